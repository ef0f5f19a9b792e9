"""The published protocols of DiffGen over two holders ([T] chapter 7), corrected."""

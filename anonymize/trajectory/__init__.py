"""LKC-privacy of paths and sets ([T] chapter 4): somebody knows a few items of a person's record."""

"""LKC-privacy of paths and sets ([T] chapter 4): what is known of a person is a few of the items of a record."""

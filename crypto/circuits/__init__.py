"""Functions on words, written once over :class:`crypto.builder.Builder` for every back end.

``arithmetic`` sums, products, comparisons · ``selection`` choosing, tables, maxima · ``score`` the integer
x·log2 x and the gain · ``fraction`` exact order of fractions · ``noise`` geometric and discrete Laplace
noise from coins · ``constants`` the public constants behind the noise, exact.
"""

"""What pyproject.toml cannot say: the wheel has the examples inside the package `jointcut`.

A link in the sources would do the same, but archives and copies lose links.
"""

from setuptools import find_packages, setup

SHIPPED = ("anonymize", "coordinator", "crypto", "evaluation", "jobs", "jointcut", "party", "protos")

setup(
    packages=[*find_packages(include=[*SHIPPED, *(f"{name}.*" for name in SHIPPED)]), "jointcut.examples"],
    package_dir={"jointcut.examples": "examples"},
)

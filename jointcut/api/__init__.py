"""Python interface of Jointcut. Users import `jointcut`, which has every name of this folder."""

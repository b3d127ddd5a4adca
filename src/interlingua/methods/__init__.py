"""One file, one paper: the objectives an encoder is trained with."""

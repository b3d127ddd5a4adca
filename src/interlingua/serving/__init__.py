"""An encoder behind HTTP: requests of many clients share batches of bounded size."""

from interlingua.callable_package import make_callable

make_callable(__name__)

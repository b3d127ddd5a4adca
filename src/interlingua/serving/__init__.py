"""An encoder behind HTTP: requests of many clients share batches of bounded size."""

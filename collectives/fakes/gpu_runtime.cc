// A library for a name: tests look whether it is loaded, and call nothing of it.

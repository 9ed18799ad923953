"""python -m fenchel: the command line."""

from fenchel.cli import main

if __name__ == "__main__":
    main()

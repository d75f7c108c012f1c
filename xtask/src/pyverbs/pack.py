"""Writes a tar file with Python, its libraries, pyverbs and the directory of the second argument, for a guest."""

import os
import subprocess
import sys
import sysconfig
import tarfile

import pyverbs

archive, directory = sys.argv[1:]
folders = [sysconfig.get_path("stdlib"), *pyverbs.__path__]
program = os.path.realpath(sys.executable)


def wanted(member):
    """Leaves out compiled bytecode and the tests of Python itself."""
    unneeded = {"__pycache__", "test", "idlelib", "lib2to3", "ensurepip"}
    return None if unneeded & set(member.name.split("/")) else member


objects = [program]
for folder in folders:
    for path, _, names in os.walk(folder):
        objects += [os.path.join(path, name) for name in names if name.endswith(".so")]
# ldd prints the libraries of each object, some as `NAME => PATH (ADDRESS)`.
words = subprocess.run(["ldd", *objects], capture_output=True, text=True, check=True).stdout.split()
libraries = {word for word in words if word.startswith("/") and not word.endswith(":")}

with tarfile.open(archive, "w", dereference=True) as tar:
    tar.add(program, "usr/bin/python3")
    for path in [*folders, *sorted(libraries)]:
        tar.add(path, filter=wanted)
    tar.add(directory, "pyverbs")

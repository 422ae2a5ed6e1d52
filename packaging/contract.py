# SPDX-License-Identifier: Apache-2.0
"""What is made of api-spec/openapi.yaml and what judges it. Brings its tools at first use: Python's into .venv/contract, Node's and Go's beside
the programs in tests/contract. Standard library only.

    contract.py validate              openapi-spec-validator: is it OpenAPI?
    contract.py lint                  Redocly's rules, as api-spec/redocly.yaml chooses them
    contract.py documents [--check]   broker/client/documents.py: write it, or exit 1 where it is another
    contract.py build LANGUAGE        generate a client in python, typescript or go, and compile it with the program that uses it
    contract.py drive LANGUAGE        build, and run that program on the broker of BWB_URL and BWB_TOKEN
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dashboard

ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "api-spec" / "openapi.yaml"
RULES = ROOT / "api-spec" / "redocly.yaml"
DOCUMENTS = ROOT / "broker" / "client" / "documents.py"
PROGRAMS = ROOT / "tests" / "contract"
TOOLS = ROOT / ".venv" / "contract"  # of their own: the client generator and bwb want different versions of typer
LANGUAGES = ("python", "typescript", "go")

_HEADER = '''# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of the API, generated from api-spec/openapi.yaml by packaging/contract.py; do not edit."""
'''


def main(arguments: list[str]) -> int:
    match arguments:
        case ["validate"]:
            run(python_tool("openapi-spec-validator"), str(CONTRACT))
        case ["lint"]:
            run(*node(), "lint.mjs", str(CONTRACT), str(RULES), cwd=PROGRAMS / "typescript")
        case ["documents"]:
            DOCUMENTS.write_text(documents())
        case ["documents", "--check"]:
            if DOCUMENTS.read_text() != documents():
                sys.stderr.write(f"{DOCUMENTS} is not what the contract generates: packaging/contract.py documents\n")
                return 1
        case ["build", language] if language in LANGUAGES:
            build(language)
        case ["drive", language] if language in LANGUAGES:
            run(*build(language))
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    return 0


def documents() -> str:
    """A TypedDict for each schema."""
    made = ROOT / ".venv" / "documents.py"
    options = "--output-model-type typing.TypedDict --no-use-closed-typed-dict --enum-field-as-literal all --use-schema-description"
    options += (
        " --use-standard-collections --use-union-operator --target-python-version 3.11 --disable-timestamp --formatters builtin"
    )
    run(
        python_tool("datamodel-codegen"),
        "--input",
        str(CONTRACT),
        "--input-file-type",
        "openapi",
        "--output",
        str(made),
        *options.split(),
    )
    body = made.read_text().partition("from __future__ import annotations\n")[2]
    made.write_text(_HEADER + body)
    ruff = str(ROOT / ".venv" / "bin" / "ruff")
    run(ruff, "check", "--quiet", "--fix", "--select", "F,I", str(made))
    run(ruff, "format", "--quiet", str(made))
    return made.read_text()


def build(language: str) -> list[str]:
    """The command that runs the compiled program."""
    folder = PROGRAMS / language
    generated = folder / "generated"
    wanted = hashlib.sha256(CONTRACT.read_bytes() + b"".join(path.read_bytes() for path in _settings(folder))).hexdigest()
    stamp = generated / ".contract"
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(generated, ignore_errors=True)
        {"python": generate_python, "typescript": generate_typescript, "go": generate_go}[language](generated)
        stamp.write_text(wanted)
    return {"python": compile_python, "typescript": compile_typescript, "go": compile_go}[language](folder)


def _settings(folder: Path) -> list[Path]:
    return sorted(path for pattern in ("*.lock", "*.json", "*.yaml", "go.mod") for path in folder.glob(pattern))


def generate_python(into: Path) -> None:
    """By openapi-python-client."""
    options = ["--path", str(CONTRACT), "--output-path", str(into), "--meta", "none"]
    run(python_tool("openapi-python-client"), "generate", *options, quiet=True)  # it has much to say about a picture


def compile_python(folder: Path) -> list[str]:
    python = python_tool("python")
    run(python, "-m", "compileall", "-q", str(folder))
    return [python, str(folder / "drive.py")]


def generate_typescript(into: Path) -> None:
    """By openapi-typescript."""
    into.mkdir()
    options = ["--default-non-nullable", "false", "--output", str(into / "schema.d.ts")]
    run(*node(), "node_modules/openapi-typescript/bin/cli.js", str(CONTRACT), *options, cwd=into.parent)


def compile_typescript(folder: Path) -> list[str]:
    run(*node(), "node_modules/typescript/bin/tsc", "--project", ".", cwd=folder)
    return [*node(), str(folder / "generated" / "drive.js")]


def generate_go(into: Path) -> None:
    """By oapi-codegen, in the version that agents/go.mod pins."""
    into.mkdir()
    settings = str(into.parent / "codegen.yaml")
    run(go(), "tool", "oapi-codegen", "-config", settings, "-o", str(into / "client.gen.go"), str(CONTRACT), cwd=ROOT / "agents")


def compile_go(folder: Path) -> list[str]:
    program = folder / "generated" / "drive"
    run(go(), "build", "-o", str(program), ".", cwd=folder)
    return [str(program)]


def go() -> str:
    return str(ROOT / ".venv" / "bin" / "go")


def python_tool(name: str) -> str:
    """The path of a tool of tests/contract/python/requirements.lock, which is installed where it is not."""
    lock = PROGRAMS / "python" / "requirements.lock"
    installed = TOOLS / ".lock"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        uv = str(ROOT / ".venv" / "bin" / "uv")
        run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(TOOLS))
        run(
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            str(TOOLS / "bin" / "python"),
            "--require-hashes",
            "--requirement",
            str(lock),
        )
        installed.write_bytes(lock.read_bytes())
    return str(TOOLS / "bin" / name)


def node() -> list[str]:
    """The command node; the packages of tests/contract/typescript are there."""
    found = dashboard.node()
    if found is None:
        raise SystemExit("no Node: make setup")
    npm, environment = found
    folder = PROGRAMS / "typescript"
    lock, installed = folder / "package-lock.json", folder / "node_modules" / ".lock"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        run(*npm, "ci", "--no-progress", "--no-audit", "--no-fund", cwd=folder, environment=environment)
        installed.write_bytes(lock.read_bytes())
    program = shutil.which("node", path=environment.get("PATH"))
    assert program is not None
    return [program]


def run(*command: str, cwd: Path = ROOT, environment: dict[str, str] | None = None, quiet: bool = False) -> None:
    """`quiet`: show what the command says only where it fails."""
    said = subprocess.PIPE if quiet else None
    done = subprocess.run(command, cwd=cwd, env=environment or dict(os.environ), stdout=said, stderr=said, text=True, check=False)
    if done.returncode:
        sys.stderr.write((done.stdout or "") + (done.stderr or ""))
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
import typer

from broker.cli.demo.command import demo_command

if __name__ == "__main__":
    typer.run(demo_command)

"""MariaDB for slurmdbd: an empty directory is filled with an initialised one, and the account is made."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

TEMPLATE = Path("/usr/share/slurm-operator/database")
DATA = Path("/var/lib/mysql")


def prepare(data: Path, template: Path) -> None:
    """Fills the directory when nobody has. The accounts come last: an interrupted copy is made again."""
    if (data / "mysql").exists():
        return
    for source in sorted(template.iterdir(), key=lambda path: path.name == "mysql"):
        target = data / source.name
        temporary = data / f".{source.name}.new"
        if source.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.copytree(source, temporary, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(source, temporary)
        if target.is_dir():
            shutil.rmtree(target)
        temporary.rename(target)


def account_sql(environment: Mapping[str, str]) -> str:
    """Statements that make the database and its user as the usual variables say; safe to repeat."""
    database = environment.get("MARIADB_DATABASE", "")
    user = environment.get("MARIADB_USER", "")
    statements = []
    if database:
        statements.append(f"CREATE DATABASE IF NOT EXISTS {_name(database)};")
    if user:
        account = f"{_text(user)}@'%'"
        password = _text(environment.get("MARIADB_PASSWORD", ""))
        statements.append(f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY {password};")
        statements.append(f"ALTER USER {account} IDENTIFIED BY {password};")
    if database and user:
        statements.append(f"GRANT ALL ON {_name(database)}.* TO {_text(user)}@'%';")
    return "".join(f"{statement}\n" for statement in statements)


def command(sql: str, arguments: Sequence[str]) -> list[str]:
    """The command that serves the directory and runs the statements first."""
    # Passwords stay in memory: the statements are a file without a name that the server inherits.
    statements = os.memfd_create("init.sql", flags=0)
    os.write(statements, sql.encode())
    return [
        *("mariadbd", "--no-defaults", f"--datadir={DATA}", "--socket=/run/mysqld/mysqld.sock"),
        # Snapshot isolation makes slurmdbd fail on write conflicts that it does not expect.
        "--innodb-snapshot-isolation=OFF",
        # What slurmdbd asks for: rolling up a month holds locks for minutes.
        "--innodb-lock-wait-timeout=900",
        *("--skip-name-resolve", "--bind-address=0.0.0.0", f"--init-file=/proc/self/fd/{statements}"),
        *arguments,
    ]


def _name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

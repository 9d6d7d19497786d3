"""The box with what a cluster has once: slurmctld, slurmrestd and, when wanted, slurmdbd and MariaDB."""

import os
import secrets
import socket
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slurm_local.image.roots import DATABASE
from testing.boxed import conf
from testing.boxed.box import box_in
from testing.boxed.daemon import Daemon
from testing.boxed.series import has_http
from testing.boxed.switch import Switch

# User and group ids in the image.
SLURM = (401, 401)
MYSQL = (995, 995)
NOBODY = (65534, 65534)
TESTER = (1000, 1000)

_DATA = "/var/lib/mysql"


class Head:
    """The box, its network and its daemons. None of them runs yet."""

    def __init__(self, rootfs: Path, directory: Path, *, accounting: bool, confined: bool = False) -> None:
        self.slurm_key = secrets.token_bytes(1024)
        self.jwt_key = secrets.token_bytes(32)
        self.box = box_in(directory, rootfs, conf.CONTROLLER)
        self.switch = Switch(self.box)
        self.address = self.switch.address
        self._directory = directory
        self._confined = confined
        self._accounting = accounting
        self._has_http = has_http(rootfs)
        self._prepare()
        if accounting:
            self._prepare_database()
        self.mariadbd = self._mariadbd()
        self.slurmdbd = self._daemon(["slurmdbd", "-D"], SLURM, lambda: self._listens(6819))
        self.slurmctld = self._daemon(["slurmctld", "-D"], SLURM, self.slurmctld_is_ready)
        self.slurmrestd = self._slurmrestd()
        database = [self.mariadbd, self.slurmdbd] if accounting else []
        self.daemons = [*database, self.slurmctld, self.slurmrestd]

    def start(self) -> None:
        """Thaws what is frozen and starts what does not run; comes back when everything answers."""
        for daemon in self.daemons:
            daemon.resume()
            if not daemon.is_running:
                daemon.start()

    def close(self) -> None:
        self.box.close()
        for daemon in self.daemons:
            daemon.close()

    def _prepare(self) -> None:
        uid, gid = TESTER
        self.box.append("/etc/hosts", f"{self.address} {conf.CONTROLLER}")
        # Users must be known where they submit and where slurmctld is, not on the workers.
        self.box.append("/etc/passwd", f"tester:x:{uid}:{gid}::/tmp:/bin/sh")
        self.box.append("/etc/group", f"tester:x:{gid}:")
        self.box.write_secret("/etc/slurm/slurm.key", self.slurm_key, SLURM)
        self.box.write_secret("/etc/slurm/jwt.key", self.jwt_key, SLURM)
        self.box.write_secret("/etc/slurm/slurmdbd.conf", conf.SLURMDBD_CONF.encode(), SLURM)
        self.box.path("/etc/slurm/cgroup.conf").write_text(conf.CGROUP_CONF)
        for name in ("/run/slurmctld", "/run/slurmdbd", "/var/spool/slurmctld"):
            self._own_directory(name, SLURM)

    def _prepare_database(self) -> None:
        self._own_directory("/run/mysqld", MYSQL)
        self.box.path("/run/mysqld/init.sql").write_text(conf.DATABASE_SQL)
        self.box.run("cp", "--archive", DATABASE, _DATA)

    def _own_directory(self, name: str, owner: tuple[int, int]) -> None:
        path = self.box.path(name)
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, *owner)

    def _daemon(
        self,
        argv: Sequence[str],
        user: tuple[int, int],
        ready: Callable[[], bool],
        env: Mapping[str, str] | None = None,
    ) -> Daemon:
        log = self._directory / f"{argv[0]}.log"
        return Daemon(self.box, argv, log=log, ready=ready, user=user, env=env, confined=self._confined)

    def _mariadbd(self) -> Daemon:
        options = [
            f"--datadir={_DATA}",
            "--socket=/run/mysqld/mysqld.sock",
            "--init-file=/run/mysqld/init.sql",
        ]
        # Snapshot isolation makes slurmdbd fail on write conflicts that it does not expect.
        options += ["--skip-networking", "--innodb-snapshot-isolation=OFF"]
        return self._daemon(["mariadbd", "--no-defaults", *options], MYSQL, self._database_answers)

    def _slurmrestd(self) -> Daemon:
        env = {"SLURM_JWT": "daemon", "SLURMRESTD_SECURITY": "disable_unshare_files,disable_unshare_sysv"}
        # The older one ends where slurm.conf has no slurmdbd for the plugin of its API; so pods name the other, too.
        plugins = [] if self._has_http or self._accounting else ["-s", "openapi/slurmctld"]
        argv = ["slurmrestd", "-a", "rest_auth/jwt", *plugins, "0.0.0.0:6820"]
        return self._daemon(argv, NOBODY, lambda: self._listens(6820), env)

    def _database_answers(self) -> bool:
        asked = self.box.run("mariadb", "--execute=USE slurm_acct_db", user=SLURM, check=False)
        return asked.returncode == 0

    def _listens(self, port: int) -> bool:
        with socket.socket() as connection:
            connection.settimeout(2)
            return connection.connect_ex((self.address, port)) == 0

    def slurmctld_is_ready(self) -> bool:
        if not self._has_http:
            return self._listens(6817)
        try:
            with urllib.request.urlopen(f"http://{self.address}:6817/readyz", timeout=2):
                return True
        except OSError:
            return False

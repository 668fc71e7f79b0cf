"""Run real Flower processes in a test: own ports, own FLWR_HOME, and every process ended by its id."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def free_ports(number):
    """Return ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]
    finally:
        for found in sockets:
            found.close()


def environment(home, ports):
    """Return the environment of an isolated Flower: nothing is sent out, nothing installed, nothing shared."""
    return os.environ | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(ports[0]),
        "FLWR_LOCAL_CONTROL_API_PORT": str(ports[1]),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "NO_COLOR": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


def wait_until_healthy(port, process, seconds=60):
    """Wait for a SuperLink."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the SuperLink ended with {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError("the SuperLink did not come up")


def end(process):
    """End a process and all that it started, by their ids."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@contextmanager
def simulation(home):
    """Start a SuperLink for simulations; yields the environment in which `flwr run` uses it."""
    ports = free_ports(2)
    env = environment(home, ports)
    command = [BIN / "flower-superlink", "--insecure", "--simulation", "--isolation", "subprocess"]
    command += ["--host", "127.0.0.1", "--port", str(ports[0]), "--control-api-address", f"127.0.0.1:{ports[1]}"]
    with (home / "superlink.log").open("w") as log:
        process = subprocess.Popen(command, env=env, cwd=home, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until_healthy(ports[0], process)
        yield env
    finally:
        end(process)


def flwr_run(env, run_config=None, *, nodes=4, folder=ROOT):
    """Run `flwr run` and return what it streams."""
    command = [BIN / "flwr", "run", str(folder), "--stream", "--federation-config", f"num-supernodes={nodes}"]
    for key, value in (run_config or {}).items():
        command += ["--run-config", f"{key}={json.dumps(value)}"]
    done = subprocess.run(
        command, env=env, cwd=env["FLWR_HOME"], capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def result_in(stream):
    """Return the machine-readable result line of a stream."""
    lines = [line for line in stream.splitlines() if "FED_MWU_RESULT " in line]
    assert len(lines) == 1, stream[-3000:]
    return json.loads(lines[0].split("FED_MWU_RESULT ")[1])

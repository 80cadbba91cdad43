"""Environment variables; all have defaults that need nothing else installed."""

import os
import secrets
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOPBACK: list[IPv4Network | IPv6Network] = [ip_network("127.0.0.0/8"), ip_network("::1")]


def text(name: str, default: str = "") -> str:
    """The value of CONTEXTLAB_<name>, or the default if unset or empty."""
    return os.environ.get(f"CONTEXTLAB_{name}", "") or default


def number(name: str, default: float) -> float:
    """A number. Raises ValueError with the variable's name if it is not one."""
    value = text(name)
    try:
        return float(value) if value else default
    except ValueError:
        raise ValueError(f"CONTEXTLAB_{name} must be a number, not {value!r}") from None


def port(given: str = "") -> int:
    """The given port, else PORT, else 8765. Raises ValueError if it is invalid."""
    value = given or os.environ.get("PORT") or "8765"
    if not value.isdecimal() or not 0 < int(value) < 65536:
        raise ValueError(f"PORT must be a number from 1 to 65535, not {value!r}")
    return int(value)


def flag(name: str) -> bool:
    """Whether the value is 1, true, yes or on."""
    return text(name).lower() in {"1", "true", "yes", "on"}


def words(name: str) -> list[str]:
    """A list separated by commas or spaces."""
    return text(name).replace(",", " ").split()


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A list of networks. Raises ValueError with the variable's name if one is not."""
    try:
        return [ip_network(word) for word in words(name)]
    except ValueError as error:
        raise ValueError(f"CONTEXTLAB_{name} must list networks: {error}") from None


def needs(setting: str, extra: str, *modules: str) -> None:
    """Check that the modules of an extra are installed. Raises ValueError with the command that
    installs them."""
    if any(find_spec(module) is None for module in modules):
        raise ValueError(f"{setting} needs the extra {extra!r}: pip install 'contextlab[{extra}]'")


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be reached from this machine."""
    name = host.strip("[]").rstrip(".").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def data_dir() -> Path:
    """The data directory: CONTEXTLAB_DATA_DIR, else var/ in a checkout, else the user's data
    folder."""
    chosen = text("DATA_DIR")
    if chosen:
        return Path(chosen).expanduser().resolve()
    if (ROOT / "manage.py").exists():
        return ROOT / "var"
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(share) / "contextlab"


def kept_secret(folder: Path, name: str) -> str:
    """A random text, generated once and kept in a file that only its owner can read. Raises
    ValueError if the file is empty."""
    path = folder / name
    try:
        return _secret_in(path)
    except FileNotFoundError:
        pass
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Write a draft and link it into place, so that two processes starting at once get the same
    # secret.
    draft = folder / f".{name}.{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return _secret_in(path)


def _secret_in(path: Path) -> str:
    found = path.read_text().strip()
    if not found:
        raise ValueError(f"{path} is empty; delete it, and a new one is made")
    return found

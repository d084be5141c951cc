"""Who one is, by one's credential."""

from dataclasses import replace
from pathlib import Path

from recto.api.users import me
from tests.api.local_api import NOW, local_api


async def test_P5_each_user_is_told_who_they_are(tmp_path: Path):
    async with local_api(tmp_path, me.ROUTES) as api:
        api.app.state.backend = replace(api.backend, operators=frozenset({"bob"}))
        await api.store.set_tier("bob", "pro", NOW)
        ann, bob = [(await api.ask("GET", "/api/v1/agent/me", user=name)).json for name in ("ann", "bob")]
    assert ann == {"user": "ann", "operator": False, "tier": "free"}
    assert bob == {"user": "bob", "operator": True, "tier": "pro"}

"""D2: a page with pictures that its provider refuses is sent once more without them."""

from collections.abc import Iterator

import pytest

from recto.testing.model_server import failure
from tests.api.forms import file
from tests.end_to_end.files import FileWorld, Talk, Turn, calling, part, words
from tests.files.heads import PNG, SVG

pytestmark = pytest.mark.full

REJECTION = failure(400, "Could not process image", code="invalid_request_error")
TOO_LARGE = failure(413, "Request too large", code="request_too_large")
BLIND = "This model cannot see images: of those above it has the id, name and url only. Do not guess what they show."
LENGTH = 4_000
PHOTO = file("photo.png", PNG + bytes(LENGTH // 2))
LARGE = file("large.png", PNG + bytes(LENGTH * 3 // 4 - len(PNG) - 4))
DRAWING = file("drawing.svg", SVG)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileWorld]:
    folder = tmp_path_factory.mktemp("pictures")
    world = FileWorld(folder, image_bytes=LENGTH, page_image_bytes=LENGTH)
    world.write_agent("once", more="limits: {failures: 1}")
    world.write_agent("short", more="history: 1")
    with world:
        yield world


def images(turn: Turn) -> tuple[str, list[int]]:
    """Return the end of a turn, and the number of pictures in each of its pages."""
    return str(turn.last["type"]), [model_request.body.count(b'"type":"image') for model_request in turn.requests]


FINISHED, FAILED = "RUN_FINISHED", "RUN_ERROR"
REFUSALS = {
    "status 400": ("en-openai", "Look.", PHOTO, (REJECTION,), (FINISHED, [1, 0])),
    "status 422": ("en-openai", "Look.", PHOTO, (failure(422, "Could not process image"),), (FINISHED, [1, 0])),
    "the other wire": ("en-anthropic", "Look.", PHOTO, (REJECTION,), (FINISHED, [1, 0])),
    "refused without pictures too": ("en-openai", "Look.", PHOTO, (REJECTION, REJECTION), (FAILED, [1, 0])),
    "no fault of the page": ("en-openai", "Look.", PHOTO, (failure(401),), (FAILED, [1])),
    "no picture for a model": ("en-openai", "Look.", DRAWING, (REJECTION,), (FAILED, [0])),
    "a model that sees none": ("en-blind", "Look.", PHOTO, (REJECTION,), (FAILED, [0])),
    "as often as a run may fail": ("once", "Look.", PHOTO, (REJECTION,), (FAILED, [1])),
    "too large, mostly pictures": ("en-openai", "Look.", LARGE, (TOO_LARGE,), (FINISHED, [1, 0])),
    "too large, mostly words": ("en-openai", "Look. " * 1_500, LARGE, (TOO_LARGE,), (FAILED, [1])),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_D2_a_page_with_pictures_that_is_refused_is_sent_again_without(world: FileWorld, case: str):
    agent, text, picture, answers, expected = REFUSALS[case]
    turn = world.say(Talk(agent=agent), [words(text), *map(part, world.upload(picture, agent=agent))], *answers)
    assert images(turn) == expected
    if len(turn.requests) == 2:
        assert [BLIND.encode() in model_request.body for model_request in turn.requests] == [False, True]
    if answers == (REJECTION, REJECTION):
        assert str(turn.last["message"]).startswith("The model rejected the request.")


def test_D2_the_rest_of_the_run_goes_without_and_the_next_one_tries_again(world: FileWorld):
    talk, (photo,) = Talk(), world.upload(PHOTO)
    turn = world.say(talk, [words("Look."), part(photo)], REJECTION, calling("show", file="x"))
    assert images(turn) == (FINISHED, [1, 0, 0])
    assert images(world.say(talk, "And now?")) == (FINISHED, [1])


def test_D2_a_picture_that_the_window_no_longer_shows_is_in_no_page(world: FileWorld):
    talk, (photo,) = Talk(agent="short"), world.upload(PHOTO)
    assert images(world.say(talk, [words("Look."), part(photo)])) == (FINISHED, [1])
    assert images(world.say(talk, "And now?", REJECTION)) == (FAILED, [0])

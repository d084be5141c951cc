"""C2: settings of the server whose values have a form of their own, and what is said of one that has not."""

import pytest

from recto.cli.server_settings import OTHERS, PREFIX, load_settings
from recto.errors import SettingsError
from recto.models.choose import PROVIDERS


@pytest.mark.parametrize("languages", ["", "eng", "chi_sim+eng", "a+b+C_3"])
def test_C2_languages_are_named_as_tesseract_names_them(languages: str):
    assert load_settings({}, {"RECTO_OCR": languages}, None).documents.ocr == languages


@pytest.mark.parametrize("languages", ["a b", "eng,deu", "+eng", "eng+", "../eng", "eng\n", " "])
def test_C2_languages_that_are_none_are_told_in_words(languages: str):
    with pytest.raises(SettingsError) as refused:
        load_settings({}, {"RECTO_OCR": languages}, None)
    problem = "it is languages as tesseract names them, such as chi_sim+eng, or nothing."
    assert str(refused.value).startswith(f"Setting RECTO_OCR is {languages!r}; ")
    assert str(refused.value).endswith(problem)


def test_C2_settings_of_providers_are_no_unknown_names():
    named = {name for one in PROVIDERS for name in (one.key_setting, one.url_setting) if name.startswith(PREFIX)}
    assert named | {"RECTO_URL"} == OTHERS

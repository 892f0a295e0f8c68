"""The one way in which these tests make the folders of the reference."""

import pytest
from reference import make_pretrained

CASES = {case: settings for case, (_, settings) in make_pretrained.CASES.items()}


def without_task(tensors):
    """A head that no model here has would be ignored with a warning."""
    return {name: values for name, values in tensors.items() if "seq_relationship" not in name}


def tensors_of(case):
    return without_task(make_pretrained.tensors(case))


@pytest.fixture
def folder_of(tmp_path):
    """folder_of(case, change, settings=…) -> the folder of a case, some tensors and settings changed; "left out" leaves
    a setting out."""

    def make(case, change=lambda tensors: tensors, **settings):
        settings = {name: value for name, value in {**CASES[case], **settings}.items() if value != "left out"}
        return make_pretrained.write_folder(tmp_path / case, settings, change(tensors_of(case)))

    return make

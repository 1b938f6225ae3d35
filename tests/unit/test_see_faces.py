"""The arithmetic of faces: where they are, whichever way up, and that nothing of them is left."""

import numpy as np
import pytest

from os1_edge.see.faces import Face, FaceFinder, blur_faces, decode, distinct, shared, turn_back


def maps(*faces: tuple[int, int, float, float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Network outputs of 30 x 40 cells for (row, column, score, height, width in pixels)."""
    heat = np.zeros((30, 40), np.float32)
    sizes, rest = np.zeros((2, 30, 40), np.float32), np.zeros((2, 30, 40), np.float32)
    for row, column, score, high, wide in faces:
        heat[row, column] = score
        sizes[:, row, column] = np.log(high / 4), np.log(wide / 4)
    return heat, sizes, rest


def test_a_peak_is_a_face_around_its_cells_middle() -> None:
    (face,) = decode(*maps((10, 20, 0.9, 40, 32)), (1.0, 1.0), 0.5)
    assert face.box == (82 - 16, 42 - 20, 32, 40)
    (scaled,) = decode(*maps((10, 20, 0.9, 40, 32)), (2.0, 0.5), 0.5)
    assert scaled.box == (132, 11, 64, 20)


def test_an_unsure_peak_is_none_and_neighbours_are_one() -> None:
    assert decode(*maps((10, 20, 0.4, 40, 32)), (1.0, 1.0), 0.5) == []
    found = decode(*maps((10, 20, 0.7, 40, 32), (10, 21, 0.9, 40, 32)), (1.0, 1.0), 0.5)
    assert [face.score for face in found] == [pytest.approx(0.9)]


def test_a_wild_size_does_not_overflow() -> None:
    heat, sizes, rest = maps((10, 20, 0.9, 40, 32))
    sizes[:] = 1e9
    with np.errstate(over="raise"):
        assert len(decode(heat, sizes, rest, (1.0, 1.0), 0.5)) == 1


@pytest.mark.parametrize("turn", range(4))
def test_a_face_in_a_turned_picture_lies_where_it_is(turn: int) -> None:
    picture = np.zeros((60, 100), np.uint8)
    picture[10:25, 70:80] = 1
    rows, columns = np.nonzero(np.rot90(picture, turn))
    box = (columns.min(), rows.min(), np.ptp(columns) + 1, np.ptp(rows) + 1)
    assert turn_back(Face(0.9, box), turn, (60, 100)).box == (70, 10, 10, 15)


def test_overlap_is_shared_over_joint_area() -> None:
    assert shared((0, 0, 10, 10), (5, 0, 10, 10)) == pytest.approx(1 / 3)
    assert shared((0, 0, 10, 10), (10, 0, 10, 10)) == 0
    assert [f.score for f in distinct([Face(0.5, (0, 0, 9, 9)), Face(0.8, (0, 0, 10, 10))])] == [0.8]


class Stripes:
    """Takes stripes for a face: mosaic of `cells` columns still has them."""

    def __init__(self, columns: int) -> None:
        self.columns = columns

    def find(self, image: np.ndarray, least: float = 0.5) -> tuple[Face, ...]:
        row = image[60, 40:100, 0].astype(int)
        return (Face(0.9, (40, 40, 60, 60)),) if len(set(row)) >= self.columns else ()


def striped() -> np.ndarray:
    return np.random.default_rng(5).integers(0, 255, (140, 140, 3), np.uint8)


@pytest.mark.parametrize(("columns", "rounds"), [(9, 1), (4, 2), (2, 3)])
def test_what_is_still_found_is_made_coarser(columns: int, rounds: int) -> None:
    picture = striped()
    kept = picture.copy()
    clean = blur_faces(picture, Stripes(columns))
    assert clean.rounds == rounds
    assert np.array_equal(picture, kept), "the picture given is not touched"
    assert np.array_equal(clean.image[:20], kept[:20]), "what is no face stays"


def test_a_picture_without_faces_is_the_one_given() -> None:
    picture = np.zeros((140, 140, 3), np.uint8)
    assert blur_faces(picture, Stripes(2)).image is picture


def test_a_missing_model_is_named(tmp_path: object) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        FaceFinder(f"{tmp_path}/nowhere.onnx")  # type: ignore[arg-type]

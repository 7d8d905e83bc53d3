"""The catalogue is whole, readable without its sources' shorthand, and found by id and glob."""

import pickle
import re

import pytest

from kubelet_conformance.contract.catalogue import Level, Row, UnknownContract, areas, row, rows, select

#: The shorthand for files and documents in which the catalogue was first written down.
CODES = (
    "KM|KC|KS|KU|KT|KG|KLab|KH|CH|CA|PW|KL|KP|SM|SG|PBw|PBm|PBp|PLg|PLe|IM|IMp|IMk|CF|CC|FI|HT|AS|MC|LH|LP"
    "|NS|EV|AD|RC|DC|RT|BO|PRX|CT|UT|DOC|S0|S1|S2|S3|S4"
)

SHORTHAND = re.compile(rf"\b({CODES})\b|\bCRI\b(?!-O)|(?<!kubernetes/kubernetes)#\d{{4,}}")

#: Marks of the tables the rules were written in, and references to sections that are not published.
MARKUP = re.compile(r"`|★|\||=>|\*\*|\b(?:table|section) \d|\b27\.\d")


def texts(rule: Row) -> tuple[str, ...]:
    """Everything in a row that a reader is shown."""
    return (
        rule.rule,
        rule.stimulus,
        rule.observation,
        rule.versions,
        rule.source,
        rule.mutant,
        rule.excluded,
    )


def place(rule: Row) -> tuple[int, int]:
    """Where a row belongs: the area's place in the catalogue, then the number."""
    return areas().index(rule.area), int(rule.id.partition("-")[2])


def test_catalogue_holds_every_contract_once() -> None:
    """There are 561 contracts in 32 areas, and each line of the file has an id of its own."""
    found = rows()

    assert len(found) == 561
    assert len(areas()) == 32
    assert all(name == rule.id for name, rule in found.items())


def test_ids_are_an_area_and_a_number() -> None:
    """An id is its area in capitals, a hyphen and a number of two digits."""
    wrong = [rule.id for rule in rows().values() if not re.fullmatch(rf"{rule.area}-\d\d", rule.id)]

    assert wrong == []
    assert all(re.match(r"^[A-Z]+-\d+$", name) for name in rows())


def test_numbers_of_an_area_run_without_a_gap() -> None:
    """Within an area the numbers start at 1 and none is left out."""
    for area in areas():
        numbers = [int(rule.id.partition("-")[2]) for rule in rows().values() if rule.area == area]

        assert numbers == list(range(1, len(numbers) + 1)), area


def test_rows_stand_in_catalogue_order() -> None:
    """Rows are sorted by area, in the catalogue's order of areas, and by number within an area.

    Rules that were added after the first count stand in their area like any other, not at the end.
    """
    found = list(rows().values())

    assert found == sorted(found, key=place)
    assert areas()[0] == "LOOP"
    assert areas()[-2:] == ("CRI", "METRIC")


def test_levels_are_those_of_the_catalogue() -> None:
    """Every level is one of three words; what is upstream's way and no promise is a SHOULD, else a MUST."""
    levels = {rule.id: rule.level for rule in rows().values()}

    assert set(levels.values()) <= set(Level)
    no_must = {name for name, level in levels.items() if level is not Level.MUST}
    assert no_must == {"SYNC-07", "PLEG-02", "CRI-04", "CRI-42", "RESTARTKUBELET-18"}


def test_sixty_rows_are_marked() -> None:
    """Sixty rules carry the mark of the highly discriminating ones."""
    assert sum(rule.star for rule in rows().values()) == 60


def test_addressee_follows_from_the_area() -> None:
    """The CRI rules bind the runtime but for two about its caller, the others the kubelet or the suite."""
    suite = [rule.id for rule in rows().values() if rule.addressee == "suite"]
    others = [rule for rule in rows().values() if rule.addressee != "suite"]

    assert suite == ["LOOP-02", "LOOP-17", "PLEG-10"]
    of_the_caller = [rule.id for rule in others if rule.area == "CRI" and rule.addressee == "kubelet"]
    assert of_the_caller == ["CRI-41", "CRI-42"]
    assert all(rule.area == "CRI" for rule in others if rule.addressee == "runtime")


def test_no_cell_is_empty_or_ragged() -> None:
    """Every cell but the reason of a planned row says something and has no stray white space."""
    for rule in rows().values():
        cells = texts(rule)[:-1]

        assert all(cells), rule.id
        assert all(cell == " ".join(cell.split()) for cell in cells), rule.id
        assert rule.rule[-1] in ".)", rule.id


def test_sources_are_spelled_out() -> None:
    """No source or version keeps a code for a file, a document or an issue number without its project."""
    kept = {
        rule.id: cell
        for rule in rows().values()
        for cell in (rule.source, rule.versions)
        if SHORTHAND.search(cell)
    }

    assert kept == {}


def test_no_markup_is_left() -> None:
    """No cell keeps the marks of a table or points to a numbered section."""
    kept = {rule.id: cell for rule in rows().values() for cell in texts(rule) if MARKUP.search(cell)}

    assert kept == {}


def test_references_name_rules_that_exist() -> None:
    """Every id that a row mentions is in the catalogue."""
    mentioned = {
        name for rule in rows().values() for name in re.findall(r"\b[A-Z]+-\d\d\b", " ".join(texts(rule)))
    }

    assert mentioned
    assert mentioned <= set(rows())


def test_excluded_rows_are_few_and_say_why() -> None:
    """Fewer than one row in twenty is left out, among them all that bind the suite."""
    excluded = [rule for rule in rows().values() if rule.excluded]

    assert 0 < len(excluded) < 0.05 * len(rows())
    assert all(rule in excluded for rule in rows().values() if rule.addressee == "suite")


def test_row_is_found_in_either_case() -> None:
    """A rule is found by its id, in upper or lower case."""
    assert row("SANDBOX-03").id == "SANDBOX-03"
    assert row("sandbox-03") is row("SANDBOX-03")


@pytest.mark.parametrize(
    ("asked", "best"),
    [("SANDBOX-3", "SANDBOX-03"), ("sanbox-04", "SANDBOX-04"), ("TERM15", "TERM-15"), ("PLEG_02", "PLEG-02")],
)
def test_unknown_id_suggests_the_meant_one(asked: str, best: str) -> None:
    """An id with a slip in it is refused with the meant id as the first suggestion."""
    with pytest.raises(UnknownContract) as caught:
        row(asked)

    assert caught.value.nearest[0] == best
    assert str(caught.value) == f"there is no contract {asked}; nearest: {', '.join(caught.value.nearest)}"


def test_suggestions_prefer_the_same_area() -> None:
    """A number that an area lacks is answered with ids of that area only."""
    with pytest.raises(UnknownContract) as caught:
        row("GC-99")

    assert len(caught.value.nearest) == 3
    assert all(name.startswith("GC-") for name in caught.value.nearest)


def test_name_like_nothing_gets_no_suggestion() -> None:
    """A name that resembles no id is refused without suggestions."""
    with pytest.raises(UnknownContract, match=r"^there is no contract \?{7}$") as caught:
        row("???????")

    assert caught.value.nearest == ()


def test_unknown_contract_is_a_lookup_error_that_travels() -> None:
    """The error is caught as a LookupError and survives pickling, as between test processes."""
    error = pickle.loads(pickle.dumps(UnknownContract("FOO-1", ("LOOP-01",))))  # noqa: S301 - made right here

    assert issubclass(UnknownContract, LookupError)
    assert isinstance(error, UnknownContract)
    assert (error.name, error.nearest) == ("FOO-1", ("LOOP-01",))
    assert str(error) == "there is no contract FOO-1; nearest: LOOP-01"


def test_glob_selects_an_area() -> None:
    """A glob selects the rules of one area, in the order of the catalogue and in either case."""
    expected = [rule.id for rule in rows().values() if rule.area == "RESTART"]

    assert select(["RESTART-*"]) == expected
    assert select(["restart-*"]) == expected
    assert len(expected) == 24


def test_selection_keeps_the_order_asked_for() -> None:
    """Ids come in the order of the patterns, and each comes once."""
    assert select(["work-02", "SHUT-*", "WORK-02", "SHUT-01"]) == [
        "WORK-02",
        "SHUT-01",
        "SHUT-02",
        "SHUT-03",
        "SHUT-04",
    ]
    assert select([]) == []
    assert select(["*"]) == list(rows())


def test_pattern_that_matches_nothing_is_an_error() -> None:
    """One pattern without a match refuses the whole selection and suggests ids of the meant area."""
    with pytest.raises(UnknownContract, match=r"there is no contract SANBOX-\*; nearest: SANDBOX-") as caught:
        select(["LOOP-01", "SANBOX-*"])

    assert caught.value.name == "SANBOX-*"


def test_catalogue_cannot_be_changed() -> None:
    """The mapping and its rows are values: neither takes an assignment."""
    with pytest.raises(TypeError):
        rows()["LOOP-01"] = row("LOOP-02")  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    with pytest.raises(AttributeError):
        row("LOOP-01").star = True  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]

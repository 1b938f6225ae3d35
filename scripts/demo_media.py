"""The four places of the demo morning, rendered from free furniture models as glasses would see them.

Needs the `bpy` package (Blender as a module, Cycles on the CPU, fixed seed) and the `.sh3f` libraries of
Sweet Home 3D (Debian: `sweethome3d-furniture`; CC0 and CC-BY, see docs/media.md). Lengths are metres, x to
the right, y away from the wearer, z up; angles are degrees.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import bpy  # pip install bpy
from mathutils import Vector

SIZE = (720, 540)
"""Rendered pixels; the 640x480 frames are windows of it, so that the wearer's head can move a little."""
CC0, CC_BY = "BlendSwap-CC-0", "BlendSwap-CC-BY"
Colour = tuple[float, float, float]
Point = tuple[float, float, float]


class Furniture:
    """Models of the `.sh3f` libraries (zip files of OBJ models and a catalogue), unpacked under `cache`."""

    def __init__(self, libraries: Path, cache: Path) -> None:
        self._libraries, self._cache = libraries, cache
        self._sizes: dict[str, dict[str, tuple[float, float, float]]] = {}

    def place(
        self, library: str, name: str, at: Point, turn: float = 0.0, scale: float = 1.0, paint: Any = None
    ) -> None:
        """Put a model, in its catalogue size, with the middle of its underside `at`, turned about z.

        `paint` replaces its own materials.
        """
        model = f"/{library.lower()}/{name}/{name}.obj"
        size = self._size(library, model)
        before = set(bpy.data.objects)
        source = str(self._cache / library / model.lstrip("/"))
        bpy.ops.wm.obj_import(filepath=source, forward_axis="NEGATIVE_Z", up_axis="Y")
        parts = [thing for thing in bpy.data.objects if thing not in before]
        bpy.context.view_layer.update()
        corners = [part.matrix_world @ Vector(c) for part in parts for c in part.bound_box]
        low = Vector([min(c[i] for c in corners) for i in range(3)])
        high = Vector([max(c[i] for c in corners) for i in range(3)])
        root = bpy.data.objects.new(model, None)
        bpy.context.collection.objects.link(root)
        for part in parts:
            part.matrix_world.translation -= Vector(((low.x + high.x) / 2, (low.y + high.y) / 2, low.z))
            part.parent = root
            for slot in part.material_slots if paint is not None else ():
                slot.material = paint
        root.scale = [scale * size[i] / max(1e-6, high[i] - low[i]) for i in range(3)]
        root.rotation_euler.z = math.radians(turn)
        root.location = at

    def _size(self, library: str, model: str) -> tuple[float, float, float]:
        """Width, depth, height in metres; unpacks the library at its first use."""
        if library not in self._sizes:
            with zipfile.ZipFile(self._libraries / f"{library}.sh3f") as archive:
                archive.extractall(self._cache / library)
                catalogue = archive.read("PluginFurnitureCatalog.properties").decode("latin-1")
            pairs = dict(line.strip().split("=", 1) for line in catalogue.splitlines() if "=" in line)
            self._sizes[library] = {
                path: tuple(float(pairs[f"{side}#{key[6:]}"]) / 100 for side in ("width", "depth", "height"))
                for key, path in pairs.items()
                if key.startswith("model#")
            }
        return self._sizes[library][model]


def material(name: str, colour: Colour, rough: float = 0.6, glow: float = 0.0) -> Any:
    """A plain Principled material."""
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    shader = made.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*colour, 1)
    shader.inputs["Roughness"].default_value = rough
    if glow:
        shader.inputs["Emission Color"].default_value = (*colour, 1)
        shader.inputs["Emission Strength"].default_value = glow
    return made


def block(low: Point, high: Point, look: Any) -> None:
    """An axis-aligned box: walls, floors, houses, windows."""
    bpy.ops.mesh.primitive_cube_add(size=1, location=[(a + b) / 2 for a, b in zip(low, high, strict=True)])
    thing = bpy.context.object
    thing.scale = [max(1e-3, b - a) for a, b in zip(low, high, strict=True)]
    thing.data.materials.append(look)


def tiles(look_a: Any, look_b: Any, side: float, x: tuple[float, float], y: tuple[float, float]) -> None:
    """A floor of two-coloured tiles."""
    columns, rows = round((x[1] - x[0]) / side), round((y[1] - y[0]) / side)
    for i in range(columns):
        for j in range(rows):
            left, near = x[0] + i * side, y[0] + j * side
            gap = 0.004
            look = look_a if (i + j) % 2 else look_b
            block((left + gap, near + gap, -0.02), (left + side - gap, near + side - gap, 0), look)


def lamp(kind: str, at: Point, to: Point, power: float, size: float) -> None:
    """An area lamp or the sun at `at`, shining to `to`."""
    light = bpy.data.lights.new(kind, kind)
    light.energy = power
    if kind == "AREA":
        light.size = size
    else:
        light.angle = size
    thing = bpy.data.objects.new(kind, light)
    thing.location = at
    thing.rotation_euler = (Vector(to) - Vector(at)).to_track_quat("-Z", "Y").to_euler()
    bpy.context.collection.objects.link(thing)


def eye(at: Point, to: Point, lens_deg: float = 64) -> None:
    """The glasses' camera."""
    camera = bpy.data.cameras.new("glasses")
    camera.angle = math.radians(lens_deg)
    thing = bpy.data.objects.new("glasses", camera)
    thing.location = at
    thing.rotation_euler = (Vector(to) - Vector(at)).to_track_quat("-Z", "Y").to_euler()
    bpy.context.collection.objects.link(thing)
    bpy.context.scene.camera = thing


def sky(colour: Colour, strength: float) -> None:
    world = bpy.data.worlds.new("sky")
    world.use_nodes = True
    background = world.node_tree.nodes["Background"]
    background.inputs[0].default_value = (*colour, 1)
    background.inputs[1].default_value = strength
    bpy.context.scene.world = world


def kitchen(lib: Furniture) -> None:
    """A home kitchen: cupboards with sink, stove and fridge; a table with a mug and a bottle, and a chair."""
    tiles(material("a", (0.5, 0.4, 0.3)), material("b", (0.4, 0.3, 0.22)), 0.4, (-3.2, 3.2), (-1.2, 3.6))
    block((-3.2, 3.5, 0), (3.2, 3.6, 2.7), material("wall", (0.78, 0.72, 0.58)))
    block((-3.3, -1.2, 0), (-3.2, 3.6, 2.7), material("side", (0.65, 0.7, 0.6)))
    lib.place(CC0, "largeFridge", (-2.1, 3.05, 0))
    for i, name in enumerate(
        ("drawersCabinet", "sinkCabinet", "lowerCabinet", "lowerCabinet", "drawersCabinet")
    ):
        lib.place(CC0, name, (-1.3 + 0.6 * i, 3.18, 0.0))
    for i in range(4):
        lib.place(CC0, "upperCabinet", (-1.3 + 0.6 * i, 3.28, 1.45))
    lib.place(CC0, "stove", (0.2, 3.18, 0.885), turn=90)
    lib.place(CC_BY, "table", (0.3, 1.25, 0))
    lib.place(CC0, "oakChair", (-0.75, 1.5, 0), turn=75)
    red = material("red", (0.62, 0.07, 0.05), 0.25)
    lib.place("KatorLegaz", "coffee-mug", (0.14, 0.9, 0.724), turn=60, scale=1.2, paint=red)
    lib.place(CC0, "yogurtBottle", (0.42, 1.0, 0.724), scale=1.25)
    lib.place(CC0, "bread", (0.1, 1.45, 0.724), turn=20)
    lamp("AREA", (0, 0.8, 2.6), (0, 1.4, 0), 75, 1.6)
    lamp("AREA", (-2.8, 1, 1.8), (0, 1.6, 0.8), 45, 1.2)
    sky((0.9, 0.95, 1.0), 0.25)


def house(x: tuple[float, float], y: float, high: float, look: Colour) -> None:
    """A house front with rows of windows and a door, facing the wearer."""
    block((x[0], y, 0), (x[1], y + 3, high), material("front", look, 0.9))
    frame, glass = material("frame", (0.9, 0.9, 0.88)), material("glass", (0.08, 0.12, 0.16), 0.1)
    columns = max(2, int((x[1] - x[0]) / 1.6))
    step = (x[1] - x[0]) / columns
    for floor in range(int(high / 2.9)):
        for i in range(columns):
            middle, foot = x[0] + step * (i + 0.5), 0.9 + 2.9 * floor
            top = foot + 1.4
            if floor == 0 and i == columns // 2:
                foot, top = 0.05, 2.3
            block((middle - 0.5, y - 0.06, foot - 0.08), (middle + 0.5, y + 0.05, top + 0.08), frame)
            block((middle - 0.42, y - 0.08, foot), (middle + 0.42, y + 0.05, top), glass)


def street(lib: Furniture) -> None:
    """A street: a car at the kerb, a bicycle on the pavement, house fronts and trees."""
    block((-40, -5, -0.02), (40, 4.6, 0), material("road", (0.10, 0.10, 0.11), 0.9))
    stone = material("stone", (0.45, 0.44, 0.42), 0.9)
    block((-40, 4.6, 0), (40, 8.0, 0.14), stone)
    block((-40, -5, 0), (40, 0.9, 0.14), stone)
    for i in range(-10, 10):
        block((i * 3.0, 2.6, 0), (i * 3.0 + 1.4, 2.72, 0.004), material("line", (0.8, 0.8, 0.78)))
    for x, high, look in (
        ((-14, -7.2), 8.7, (0.55, 0.33, 0.25)),
        ((-7.2, -1), 6.2, (0.75, 0.68, 0.5)),
        ((-1, 5.4), 8.7, (0.42, 0.5, 0.55)),
        ((5.4, 14), 6.2, (0.7, 0.5, 0.42)),
    ):
        house(x, 8.0, high, look)
    lib.place("KatorLegaz", "VW-new-beetle", (-1.35, 3.6, 0), turn=90)
    lib.place(CC_BY, "bike", (1.1, 0.75, 0.14), turn=80, scale=1.35)
    lib.place("Scopia", "acacia", (4.2, 6.4, 0.14), scale=0.75)
    lib.place("KatorLegaz", "classic-lamppost", (-3.9, 5.2, 0.14), scale=1.4)
    lamp("SUN", (-6, -8, 12), (0, 3, 0), 3.0, 0.05)
    sky((0.45, 0.65, 1.0), 0.8)


def cafe(lib: Furniture) -> None:
    """A coffee house: a small table with a cup, chairs, a counter with a machine, hanging lamps."""
    for i in range(26):
        look = material("plank", (0.28 + 0.03 * (i % 3), 0.17 + 0.02 * (i % 3), 0.09))
        block((-3.2 + i * 0.25, -1.5, -0.02), (-3.2 + i * 0.25 + 0.246, 4.4, 0), look)
    block((-3.4, 4.3, 0), (3.4, 4.4, 2.8), material("wall", (0.22, 0.32, 0.3)))
    block((-3.4, -1.5, 0), (-3.3, 4.4, 2.8), material("side", (0.6, 0.5, 0.38)))
    block((0.2, 3.2, 0), (3.0, 3.8, 1.05), material("counter", (0.35, 0.2, 0.1)))
    block((0.15, 3.15, 1.05), (3.05, 3.85, 1.1), material("top", (0.7, 0.68, 0.62), 0.3))
    lib.place("Scopia", "coffee_machine", (1.0, 3.5, 1.1), scale=1.3)
    for x in (-1.6, 0.1, 1.8):
        lib.place("KatorLegaz", "hanging-restaurant-light", (x, 2.3, 1.95), scale=0.9)
        lamp("AREA", (x, 2.3, 1.95), (x, 2.3, 0), 14, 0.3)
    wood = material("table", (0.33, 0.16, 0.07), 0.35)
    lib.place("KatorLegaz", "cafe-table", (0.05, 0.55, 0), paint=wood)
    lib.place(CC0, "thonet", (-0.75, 1.2, 0), turn=50)
    lib.place(CC0, "thonet", (0.8, 1.35, 0), turn=-40)
    lib.place(CC0, "caffe_final", (0.03, 0.42, 0.70), turn=35, scale=1.9)
    lib.place("KatorLegaz", "cafe-table", (-1.9, 2.7, 0), paint=wood)
    lib.place(CC0, "thonet", (-1.2, 2.9, 0), turn=-80)
    lamp("AREA", (-1.5, -1.0, 2.6), (0, 1.2, 0.5), 60, 1.5)
    sky((1.0, 0.9, 0.75), 0.22)


def office(lib: Furniture) -> None:
    """An office: a desk with laptop, screen, book and lamp, a chair, a bookcase and a window."""
    block((-3, -1.5, -0.02), (3, 3.2, 0), material("carpet", (0.16, 0.18, 0.22), 1.0))
    block((-3, 2.4, 0), (3, 2.5, 2.7), material("wall", (0.5, 0.54, 0.56)))
    block((0.75, 2.36, 1.15), (2.3, 2.42, 2.3), material("frame", (0.85, 0.85, 0.85)))
    block((0.82, 2.34, 1.22), (2.23, 2.4, 2.23), material("window", (0.45, 0.68, 0.95), 0.2, 1.0))
    lib.place("Scopia", "wooden_office_teak_table", (0.1, 1.0, 0))
    grey = material("grey", (0.05, 0.05, 0.055), 0.4)
    lib.place(CC_BY, "laptop", (-0.2, 0.85, 0.75), turn=8, scale=1.2)
    lib.place(CC0, "led_tv", (0.45, 1.2, 0.75), turn=-12, scale=0.75)
    lib.place(CC_BY, "book", (0.35, 0.75, 0.75), turn=-15)
    lib.place(CC0, "desklamp", (-0.62, 1.2, 0.75), turn=30)
    lib.place("KatorLegaz", "office-chair", (-1.15, 1.1, 0), turn=-60, paint=grey)
    lib.place(CC0, "bookcase", (-1.4, 2.2, 0))
    lib.place(CC0, "decorativePlant", (1.6, 1.9, 0))
    lamp("AREA", (0.3, 0.2, 2.6), (0, 1.2, 0.5), 50, 1.6)
    lamp("AREA", (1.4, 2.2, 1.7), (0, 0.8, 0.7), 15, 0.8)
    sky((0.9, 0.95, 1.0), 0.22)


PLACES = {"kitchen": kitchen, "street": street, "cafe": cafe, "office": office}
VIEWS: dict[str, dict[str, tuple[Point, Point, float]]] = {
    "kitchen": {
        "standing": ((0.02, -0.3, 1.42), (0.07, 1.6, 0.75), 64),
        "seated": ((0.12, 0.3, 1.16), (0.2, 1.3, 0.62), 62),
    },
    "street": {
        "kerb": ((0.1, -2.6, 1.65), (0.15, 4.0, 0.95), 60),
        "closer": ((0.4, -2.0, 1.65), (0.1, 4.0, 0.85), 62),
    },
    "cafe": {
        "arriving": ((0.0, -0.6, 1.45), (0.03, 1.3, 0.65), 66),
        "seated": ((0.02, -0.05, 1.12), (0.04, 0.75, 0.52), 62),
    },
    "office": {
        "seated": ((-0.02, -0.3, 1.4), (0.0, 1.2, 0.8), 62),
        "nearer": ((0.05, -0.1, 1.35), (0.05, 1.2, 0.8), 62),
    },
}
"""Where the glasses are and what they point at, with their horizontal field in degrees."""


def render(place: str, lib: Furniture, out: Path, samples: int = 12, percent: int = 100) -> list[Path]:
    """Render every view of one of `PLACES` to `out`/PLACE-VIEW.png of `SIZE`; their paths."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    PLACES[place](lib)
    scene = bpy.context.scene
    scene.render.engine = "CYCLES"
    scene.cycles.device, scene.cycles.samples, scene.cycles.seed = "CPU", samples, 1
    scene.cycles.use_denoising, scene.cycles.max_bounces = True, 5
    scene.render.resolution_x, scene.render.resolution_y = SIZE
    scene.render.resolution_percentage = percent
    scene.view_settings.view_transform = "Standard"
    scene.render.image_settings.file_format = "PNG"
    paths = []
    for view, (at, to, field) in VIEWS[place].items():
        eye(at, to, field)
        paths.append(out / f"{place}-{view}.png")
        scene.render.filepath = str(paths[-1])
        bpy.ops.render.render(write_still=True)
    return paths

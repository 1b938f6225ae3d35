"""The quality report of a calibration: one HTML file that needs nothing else, with a plot of every target."""

from __future__ import annotations

from html import escape

from os1_edge.see.gaze.calibration import Calibration, TargetResult

_GOOD_DEG, _FAIR_DEG = 1.5, 3.0

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 52rem; padding: 0 1rem;
  color: #1c2330; background: #fff; }
svg { width: 100%; height: auto; border: 1px solid #c5ccd8; border-radius: 6px; background: #f6f8fb; } table
{ border-collapse: collapse; width: 100%; } td, th { padding: .3rem .6rem; text-align: right; } th {
border-bottom: 1px solid #c5ccd8; font-weight: 600; } @media (prefers-color-scheme: dark) { body { color:
#e4e8ef; background: #12161d; } svg { background: #1a2029; } }
"""


def verdict(calibration: Calibration) -> str:
    """One sentence for the wearer: how good it is and what to do."""
    quality = calibration.quality
    left_out = sum(not target.used for target in quality.targets)
    told = f"Gaze is off by {quality.median_deg:.1f} degrees as a rule, by {quality.worst_deg:.1f} at worst."
    if left_out:
        told += f" {left_out} of {len(quality.targets)} targets did not fit the others and were left out."
    if quality.frames_used < 0.8:
        told += f" Only {100 * quality.frames_used:.0f} % of the frames could be used."
    if quality.median_deg <= _GOOD_DEG and not left_out and quality.frames_used >= 0.8:
        return told + " Good."
    if quality.median_deg <= _FAIR_DEG:
        return told + " Fair: enough to tell which thing is looked at, not which word."
    return told + " Poor: see that the eye camera sees the whole pupil, and calibrate again."


def report_html(calibration: Calibration) -> str:
    """The report as a page."""
    quality = calibration.quality
    rows = "\n".join(
        f"<tr><td>{number}</td><td>{target.x:.0f}, {target.y:.0f}</td><td>{target.frames}</td>"
        f"<td>{target.error_deg:.2f}</td><td>{'yes' if target.used else 'no'}</td></tr>"
        for number, target in enumerate(quality.targets, 1)
    )
    kind = "eye model" if calibration.map.kind == "ball" else f"{calibration.map.terms} polynomial"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"> <title>Gaze
calibration</title><style>{_STYLE}</style> <h1>Gaze calibration</h1> <p>{escape(verdict(calibration))}</p>
{plot_svg(calibration)} <p>Crosses: where the wearer was asked to look. Dots: where gaze was put by a map
fitted without that target. Map: {kind}. Precision {quality.precision_deg:.2f} degrees; {
        100 * quality.frames_used:.0f} % of the frames used.</p>
<table><tr><th>target</th><th>pixel</th><th>frames</th><th>error, degrees</th><th>used</th></tr> {rows}
</table> </html>
"""


def plot_svg(calibration: Calibration) -> str:
    """Targets and predictions on the scene picture, as an SVG element."""
    width, height = calibration.scene_width, calibration.scene_height
    marks = "\n".join(_marks(target, width / 100) for target in calibration.quality.targets)
    label = "Targets and gaze on the scene picture"
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n{marks}\n</svg>'


def _marks(target: TargetResult, size: float) -> str:
    good, fair = target.error_deg <= _GOOD_DEG, target.error_deg <= _FAIR_DEG
    colour = "#2c7a4b" if good else "#b7791f" if fair else "#c53030"
    x, y, to_x, to_y = target.x, target.y, target.predicted_x, target.predicted_y
    dash = "" if target.used else f' stroke-dasharray="{size:.1f}"'
    return (
        f'<g stroke="{colour}" fill="{colour}" stroke-width="{size / 4:.1f}"{dash}>'
        f'<path d="M{x - size:.1f} {y:.1f}h{2 * size:.1f}M{x:.1f} {y - size:.1f}v{2 * size:.1f}"/>'
        f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'
        f'<circle cx="{to_x:.1f}" cy="{to_y:.1f}" r="{size / 2:.1f}"/>'
        f"<title>{target.error_deg:.2f} degrees</title></g>"
    )

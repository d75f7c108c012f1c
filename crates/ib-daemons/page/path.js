// Draws the path of a pair, hop by hop, and its previous path.

/** Draws the former path dashed and the present path with hop numbers; returns more than 0 if anything was drawn. */
export function drawPath(overlay, former, path) {
  let drawn = 0;
  if (former) drawn += strokes(overlay, former, overlay.colours.former, 3, [9, 6], Infinity, -5);
  if (path) {
    drawn += strokes(overlay, path, overlay.colours.path, 5, [], overlay.progress, 0);
    drawn += marks(overlay, path);
  }
  return drawn;
}

/** Returns the line segments of a path, [x, y, x, y] from each hop to the next. */
function stretches(overlay, { hops }) {
  const { state: { fabric } } = overlay;
  return hops.filter(({ link }) => link !== null).map(({ node, out, link }) => {
    const [ax, ay, bx, by] = overlay.line(link);
    return fabric.side(link, node, out) === 0 ? [ax, ay, bx, by] : [bx, by, ax, ay];
  });
}

function strokes(overlay, path, colour, width, dash, hops, beside) {
  const { context, colours } = overlay, list = stretches(overlay, path);
  context.lineCap = dash.length ? "butt" : "round";
  for (const [style, wide] of [[colours.halo, width + 3], [colour, width]]) {
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.setLineDash(style === colour ? dash : []);
    list.forEach(([ax, ay, bx, by], hop) => {
      const part = Math.max(0, Math.min(1, hops - hop)), length = Math.hypot(bx - ax, by - ay) || 1;
      if (!part) return;
      // On common links, the previous path is drawn beside the present one.
      const ox = (-(by - ay) / length) * beside, oy = ((bx - ax) / length) * beside;
      context.beginPath();
      context.moveTo(ax + ox, ay + oy);
      context.lineTo(ax + (bx - ax) * part + ox, ay + (by - ay) * part + oy);
      context.stroke();
    });
  }
  context.setLineDash([]);
  context.lineCap = "butt";
  return list.length;
}

// Draws arrows in the direction of the packets, and the hop number at each switch.
function marks(overlay, path) {
  const { context, colours } = overlay;
  stretches(overlay, path).forEach(([ax, ay, bx, by], hop) => {
    if (overlay.progress < hop + 1) return;
    const length = Math.hypot(bx - ax, by - ay);
    if (length < 34) return;
    const ux = (bx - ax) / length, uy = (by - ay) / length, x = ax + (bx - ax) * 0.62, y = ay + (by - ay) * 0.62;
    context.fillStyle = colours.path;
    context.strokeStyle = colours.halo;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x + ux * 9, y + uy * 9);
    context.lineTo(x - ux * 6 - uy * 7, y - uy * 6 + ux * 7);
    context.lineTo(x - ux * 6 + uy * 7, y - uy * 6 - ux * 7);
    context.closePath();
    context.stroke();
    context.fill();
  });
  path.hops.forEach(({ node }, hop) => {
    const last = hop === path.hops.length - 1;
    if (hop === 0 || (last && !path.error) || overlay.progress < hop) return;
    const off = overlay.look.sizes[node] / 2 + 8;
    overlay.badge(overlay.x(node) + off, overlay.y(node) + off - 3, last ? "!" : String(hop), last ? colours.down : colours.path);
  });
  return path.hops.length;
}

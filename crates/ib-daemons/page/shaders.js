// Shaders. Links and nodes are read from textures with 1,024 texels per row.

const HEAD = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;
`;
const READ = `
uniform sampler2D places;
uniform vec4 camera; // scale in pixels, and position of the fabric's origin
uniform vec2 size; // size of the plate in pixels
ivec2 cell(int index) { return ivec2(index & 1023, index >> 10); }
vec2 place(uint node) { return texelFetch(places, cell(int(node)), 0).xy * camera.xy + camera.zw; }
vec4 clip(vec2 at) { return vec4(at / size * vec2(2, -2) + vec2(-1, 1), 0, 1); }
`;

/** Links, as lines of one pixel (two vertices each) or as ribbons (four vertices each). */
export const LINKS = [`${HEAD}${READ}
uniform usampler2D ends;
uniform sampler2D styles, palette;
uniform float width; // width of ribbons in pixels; 0 for lines
uniform float lane; // distance of two cables in pixels
uniform float plain; // opacity of links without priority
flat out vec4 near, far;
flat out float dashed;
out float along, across, at;

vec4 colour(float index) {
  vec4 found = texelFetch(palette, ivec2(int(index * 255.0 + 0.5), 0), 0);
  return vec4(found.rgb, mix(plain, 1.0, found.a));
}
void main() {
  int corners = width > 0.0 ? 4 : 2;
  int link = gl_VertexID / corners, corner = gl_VertexID - link * corners;
  uvec2 nodes = texelFetch(ends, cell(link), 0).xy;
  vec4 style = texelFetch(styles, cell(link), 0);
  vec2 a = place(nodes.x), b = place(nodes.y);
  float span = max(distance(a, b), 0.001);
  vec2 normal = vec2(a.y - b.y, b.x - a.x) / span;
  at = float(corner & 1);
  across = width > 0.0 ? (corner > 1 ? 1.0 : -1.0) * (width / 2.0 + 0.7) : 0.0;
  along = at * span;
  near = colour(style.r);
  far = colour(style.g);
  dashed = style.b;
  float beside = (floor(style.a * 255.0 + 0.5) - 128.0) * lane / 2.0;
  gl_Position = clip(mix(a, b, at) + normal * (across + beside));
}`, `${HEAD}
uniform float width;
flat in vec4 near, far;
flat in float dashed;
in float along, across, at;
out vec4 colour;
void main() {
  if (dashed > 0.0 && fract(along / 10.0) > 0.55) discard;
  colour = at < 0.5 ? near : far;
  if (width > 0.0) colour.a *= clamp(width / 2.0 + 0.5 - abs(across), 0.0, 1.0);
}`];

/** Nodes: switches are squares, hosts are discs, routers are diamonds. */
export const NODES = [`${HEAD}${READ}
in float extent; // size in pixels; negative for routers, plus 1,024 for hosts
uniform vec3 host, other, router;
flat out vec3 fill;
flat out float half_size;
flat out int shape;
void main() {
  float wide = extent < 0.0 ? -extent : extent > 1000.0 ? extent - 1024.0 : extent;
  shape = extent < 0.0 ? 2 : extent > 1000.0 ? 1 : 0;
  fill = shape == 2 ? router : shape == 1 ? host : other;
  half_size = wide / 2.0;
  gl_PointSize = wide + 3.0;
  gl_Position = clip(place(uint(gl_VertexID)));
}`, `${HEAD}
uniform vec3 edge;
flat in vec3 fill;
flat in float half_size;
flat in int shape;
out vec4 colour;
void main() {
  vec2 off = (gl_PointCoord - 0.5) * (half_size * 2.0 + 3.0);
  float corner = half_size * 0.28;
  vec2 box = abs(off) - half_size + corner;
  float past = shape == 1 ? length(off) - half_size
    : shape == 2 ? (abs(off.x) + abs(off.y) - half_size * 1.25) * 0.7
    : length(max(box, 0.0)) + min(max(box.x, box.y), 0.0) - corner;
  float inside = clamp(0.5 - past, 0.0, 1.0), ring = clamp(1.5 - past, 0.0, 1.0);
  colour = vec4(mix(edge, fill, inside), half_size > 2.0 ? ring : inside);
  if (colour.a <= 0.0) discard;
}`];

/** A plate on the stage, moved and stretched. */
export const SHOW = [`${HEAD}
uniform vec4 target; // left, top, right, bottom in clip coordinates of the stage
out vec2 at;
void main() {
  at = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(mix(target.xy, target.zw, at), 0, 1);
  at.y = 1.0 - at.y;
}`, `${HEAD}
uniform sampler2D plate;
in vec2 at;
out vec4 colour;
void main() { colour = vec4(texture(plate, at).rgb, 1); }`];

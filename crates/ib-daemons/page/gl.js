// Draws links and nodes with WebGL2.

import { LINKS, NODES, SHOW } from "./shaders.js";
import { parse } from "./colours.js";

const ROW = 1024; // texels in a row of a texture
const FEW = 5000; // maximum number of links drawn as ribbons, which are anti-aliased but slower than lines

/** Draws plates, images of the fabric for one camera, and shows them on a canvas. */
export class GlPainter {
  /** Returns a painter, or null if WebGL2 is not available. */
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false, stencil: false, powerPreference: "high-performance" });
    return gl && gl.getParameter(gl.MAX_VERTEX_TEXTURE_IMAGE_UNITS) >= 4 ? new GlPainter(gl, canvas) : null;
  }

  constructor(gl, canvas) {
    this.gl = gl;
    this.canvas = canvas;
    this.linksProgram = program(gl, LINKS);
    this.nodesProgram = program(gl, NODES, ["extent"]);
    this.showProgram = program(gl, SHOW);
    this.indices = gl.createBuffer();
    this.extents = gl.createBuffer();
    this.nodeOrder = gl.createBuffer();
    this.nothing = gl.createVertexArray();
    this.points = gl.createVertexArray();
    gl.disable(gl.DITHER);
    gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ZERO, gl.ONE);
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    this.name = `WebGL2: ${gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER)}`;
  }

  setFabric(fabric) {
    const { gl } = this;
    this.count = fabric.nodes.length;
    this.ends = this.texture(0, gl.RG32UI, gl.RG_INTEGER, gl.UNSIGNED_INT, 2, fabric.ends);
    this.kinds = fabric.nodes.map(({ kind }) => kind);
    // Switches are drawn over hosts.
    const order = Uint32Array.from(fabric.nodes.keys()).sort((a, b) => (this.kinds[a] === "host" ? 0 : 1) - (this.kinds[b] === "host" ? 0 : 1));
    gl.bindVertexArray(this.points);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.nodeOrder);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.extents);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 1, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(this.nothing);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.indices);
    gl.bindVertexArray(null);
  }

  setPlaces({ x, y }) {
    const { gl } = this, both = new Float32Array(2 * x.length);
    for (let node = 0; node < x.length; node++) {
      both[2 * node] = x[node];
      both[2 * node + 1] = y[node];
    }
    this.places = this.texture(1, gl.RG32F, gl.RG, gl.FLOAT, 2, both, this.places);
  }

  setStyles({ bytes }) {
    const { gl } = this;
    this.styles = this.texture(2, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, 4, bytes, this.styles);
  }

  setColours(colours) {
    const { gl } = this;
    this.colours = colours;
    this.palette = this.texture(3, gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE, 4, colours.palette, this.palette);
  }

  resize() {}

  /** Creates a plate with a size in pixels. */
  plate(width, height) {
    const { gl } = this, texture = gl.createTexture(), frame = gl.createFramebuffer();
    gl.activeTexture(gl.TEXTURE4);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
    return { width, height, texture, frame, free: () => { gl.deleteTexture(texture); gl.deleteFramebuffer(frame); } };
  }

  /**
   * Starts to draw `links`, in order, onto a plate. `look` has `scale`, plate pixels per CSS pixel; `width` of links; `lane`,
   * the distance of cables; `plain`, the opacity of links without priority; and `sizes` of nodes.
   */
  begin(plate, camera, links, look) {
    const { gl } = this, ribbons = links.length <= FEW;
    plate.scene = { camera, look, ribbons, corners: ribbons ? 6 : 2 };
    gl.bindFramebuffer(gl.FRAMEBUFFER, plate.frame);
    gl.viewport(0, 0, plate.width, plate.height);
    const [red, green, blue] = parse(this.colours.background);
    gl.clearColor(red / 255, green / 255, blue / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.bindVertexArray(this.nothing);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices(links, ribbons), gl.STREAM_DRAW);
  }

  /** Draws a range of the links passed to `begin`. */
  links(plate, from, to) {
    const { gl } = this, { look, ribbons, corners } = plate.scene, { uniforms } = this.linksProgram;
    if (to <= from) return;
    this.use(this.linksProgram, plate);
    gl.uniform1f(uniforms.width, ribbons ? look.width * look.scale : 0);
    gl.uniform1f(uniforms.lane, look.lane * look.scale);
    gl.uniform1f(uniforms.plain, look.plain);
    gl.bindVertexArray(this.nothing);
    gl.drawElements(ribbons ? gl.TRIANGLES : gl.LINES, (to - from) * corners, gl.UNSIGNED_INT, from * corners * 4);
  }

  /** Draws all nodes onto a plate. */
  nodes(plate) {
    const { gl } = this, { look } = plate.scene, { uniforms } = this.nodesProgram;
    const extents = Float32Array.from(look.sizes, (size, node) => {
      const wide = Math.min(size * look.scale, 900);
      return this.kinds[node] === "router" ? -wide : this.kinds[node] === "host" ? 1024 + wide : wide;
    });
    this.use(this.nodesProgram, plate);
    for (const [name, colour] of [["host", "host"], ["other", "switch"], ["router", "router"], ["edge", "edge"]]) {
      gl.uniform3f(uniforms[name], ...parse(this.colours[colour]).map((part) => part / 255));
    }
    gl.bindVertexArray(this.points);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.extents);
    gl.bufferData(gl.ARRAY_BUFFER, extents, gl.STREAM_DRAW);
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
  }

  use({ handle, uniforms }, plate) {
    const { gl } = this, { camera, look } = plate.scene;
    gl.useProgram(handle);
    gl.enable(gl.BLEND);
    gl.bindFramebuffer(gl.FRAMEBUFFER, plate.frame);
    gl.viewport(0, 0, plate.width, plate.height);
    [this.ends, this.places, this.styles, this.palette].forEach((texture, unit) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, texture.handle);
    });
    ["ends", "places", "styles", "palette"].forEach((name, unit) => gl.uniform1i(uniforms[name] ?? null, unit));
    gl.uniform4f(uniforms.camera, ...[camera.kx, camera.ky, camera.tx, camera.ty].map((part) => part * look.scale));
    gl.uniform2f(uniforms.size, plate.width, plate.height);
  }

  /** Shows plates, each in a rectangle [left, top, right, bottom] of the canvas, the last one on top. */
  show(list) {
    const { gl, canvas } = this, { width, height } = canvas;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, width, height);
    const [red, green, blue] = parse(this.colours.background);
    gl.clearColor(red / 255, green / 255, blue / 255, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.showProgram.handle);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
    gl.activeTexture(gl.TEXTURE4);
    gl.uniform1i(this.showProgram.uniforms.plate, 4);
    for (const [plate, [left, top, right, bottom]] of list) {
      const exact = Math.abs(right - left - plate.width) < 0.01 && Math.abs(bottom - top - plate.height) < 0.01;
      gl.bindTexture(gl.TEXTURE_2D, plate.texture);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, exact ? gl.NEAREST : gl.LINEAR);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, exact ? gl.NEAREST : gl.LINEAR);
      gl.uniform4f(this.showProgram.uniforms.target, (2 * left) / width - 1, 1 - (2 * top) / height, (2 * right) / width - 1, 1 - (2 * bottom) / height);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
  }

  // Fills a texture of constant size with numbers: `parts` for each texel.
  texture(unit, internal, format, type, parts, values, old) {
    const { gl } = this, count = values.length / parts, rows = Math.max(1, Math.ceil(count / ROW));
    const texture = old ?? { handle: gl.createTexture(), padded: new values.constructor(rows * ROW * parts) };
    texture.padded.set(values);
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, texture.handle);
    if (!old) {
      gl.texStorage2D(gl.TEXTURE_2D, 1, internal, ROW, rows);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    }
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, ROW, rows, format, type, texture.padded);
    return texture;
  }
}

function indices(links, ribbons) {
  const list = new Uint32Array(links.length * (ribbons ? 6 : 2));
  let at = 0;
  for (const link of links) {
    if (ribbons) {
      const first = 4 * link;
      list[at++] = first; list[at++] = first + 1; list[at++] = first + 2;
      list[at++] = first + 2; list[at++] = first + 1; list[at++] = first + 3;
    } else {
      list[at++] = 2 * link; list[at++] = 2 * link + 1;
    }
  }
  return list;
}

function program(gl, [vertex, fragment], attributes = []) {
  const handle = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(handle, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS) && !gl.isContextLost()) throw new Error(gl.getShaderInfoLog(shader));
  }
  attributes.forEach((name, index) => gl.bindAttribLocation(handle, index, name));
  gl.linkProgram(handle);
  if (!gl.getProgramParameter(handle, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(gl.getProgramInfoLog(handle));
  const uniforms = {};
  for (let index = gl.getProgramParameter(handle, gl.ACTIVE_UNIFORMS) - 1; index >= 0; index--) {
    const { name } = gl.getActiveUniform(handle, index);
    uniforms[name] = gl.getUniformLocation(handle, name);
  }
  return { handle, uniforms };
}

/* The tool graph: hover and focus keep a tool's edges and fade the rest; arrows follow edges. */

const graph = document.querySelector<HTMLElement>('[data-tool-graph]');

if (graph) {
  const nodes = [...graph.querySelectorAll<SVGGElement>('.tool-node')];
  const edges = [...graph.querySelectorAll<SVGGElement>('.tool-edge')];
  const of = (target: EventTarget | null) =>
    target instanceof Element ? target.closest<SVGGElement>('.tool-node') : null;

  const keep = (node: SVGGElement | null) => {
    graph.classList.toggle('chosen', node !== null);
    const near = new Set([node?.dataset.node]);
    for (const edge of edges) {
      const { from, to } = edge.dataset;
      const mine = node !== null && (from === node.dataset.node || to === node.dataset.node);
      edge.classList.toggle('kept', mine);
      if (mine) near.add(from).add(to);
    }
    for (const one of nodes)
      one.classList.toggle('kept', node !== null && near.has(one.dataset.node));
  };
  const go = (node: SVGGElement | undefined) => {
    if (!node) return;
    for (const one of nodes) one.setAttribute('tabindex', one === node ? '0' : '-1');
    node.focus();
  };
  const along = (node: SVGGElement, key: string) => {
    const at = node.dataset.node;
    if (key === 'ArrowRight' || key === 'ArrowLeft') {
      const [mine, other] = key === 'ArrowRight' ? ['from', 'to'] : ['to', 'from'];
      const edge = edges.find((one) => one.dataset[mine as string] === at);
      return nodes.find((one) => one.dataset.node === edge?.dataset[other as string]);
    }
    const column = nodes.filter((one) => one.dataset.level === node.dataset.level);
    return column[column.indexOf(node) + (key === 'ArrowDown' ? 1 : -1)];
  };

  const focused = () => of(document.activeElement);
  graph.addEventListener('pointerover', (event) => keep(of(event.target) ?? focused()));
  graph.addEventListener('pointerleave', () => keep(focused()));
  graph.addEventListener('focusin', (event) => keep(of(event.target)));
  graph.addEventListener('focusout', () => keep(null));
  graph.addEventListener('keydown', (event) => {
    const node = of(event.target);
    if (!node || !/^Arrow(Left|Right|Up|Down)$/.test(event.key)) return;
    event.preventDefault();
    go(along(node, event.key));
  });
}

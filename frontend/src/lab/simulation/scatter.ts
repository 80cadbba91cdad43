/* Cost against recall, drawn. */
import type { ScatterProps } from '../../web/chart/scatter';
import type { Beside, Body } from './body';

/** Cost against what stays in context: every version that was tried on these sessions, and the recording. */
export function scatterOf(body: Body, beside: Beside): ScatterProps {
  const groups = [
    { name: 'draft', shape: 'diamond' as const },
    { name: 'active', shape: 'square' as const },
    { name: 'other', shape: 'triangle' as const, means: 'Compared in this simulation' },
    {
      name: 'tried',
      shape: 'circle' as const,
      means: 'Earlier drafts of this policy on the same sessions',
    },
  ].filter((group) => beside.tried.some((one) => one.role === group.name));
  const sums = body.versions.find((one) => one.role === 'recorded')?.sums;
  const bounds =
    body.through === body.total && beside.tried.length
      ? [
          { name: 'recorded', x: sums?.charged_microusd, y: sums?.in_context },
          { name: 'oracle', x: sums?.oracle_microusd, y: 1 },
        ].filter((one) => one.x != null && one.y != null)
      : [];
  if (bounds.length)
    groups.push({
      name: 'bounds',
      shape: 'circle' as const,
      means: 'The sessions as recorded, and a policy that knows the future',
    });
  return {
    title: 'Cost against recall',
    x: { label: 'cost including reading back', unit: 'microusd' },
    y: { label: 'recall', unit: 'share' },
    points: [
      ...beside.tried
        .filter((one) => one.in_context !== null)
        .map((one) => ({
          x: one.cost,
          y: one.in_context!,
          label: one.ref,
          group: one.role as string,
          here: one.role === 'draft',
          url: one.url ?? undefined,
        })),
      ...bounds.map((one) => ({
        x: one.x!,
        y: one.y!,
        label: one.name,
        group: 'bounds',
        bound: true,
      })),
    ],
    groups,
    basis: 'simulated',
    note:
      body.through < body.total
        ? 'A version is drawn once all sessions are through.'
        : beside.tried.length > 1
          ? 'The dashed line joins versions that no other beats on both.'
          : undefined,
  };
}

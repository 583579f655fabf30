import type { Change } from '../../../src/recording/change.ts';

/** The clock of these tests. */
export const now = Date.UTC(2026, 8, 15);

/** A change that tells by its number all that it is. */
export function changeOf(tenant: string, n: number): Change {
  const at = now - 1_000 - (n % 97) * 3_600_000 - Math.floor(n / 7);
  return {
    at,
    type: (['create', 'update', 'delete'] as const)[n % 3] ?? 'update',
    entity: `e${n % 4}`,
    entityId: `d${n % 50}`,
    actor: `a${n % 11}`,
    related: n % 5 === 0 ? [{ entity: 'x', entityId: `y${n % 9}` }] : [],
    paths: JSON.stringify({ '/a': { before: n, after: n + 1 } }),
    identity: Buffer.from(`${tenant} ${n}`.padEnd(16, '.').slice(0, 16)),
    ...(n % 3 === 0 ? {} : { name: `name ${n}` }),
    ...(n % 2 === 0 ? {} : { actorId: `u${n % 7}`, correlationId: `c${Math.floor(n / 5)}` }),
    ...(n % 4 === 0 ? { onBehalfOf: { name: `C${n % 3}`, ...(n % 8 === 0 && { id: `k${n % 3}` }) } } : {}),
    ...(n % 6 === 0 ? { context: JSON.stringify({ ip: `10.0.0.${n % 5}` }) } : {}),
  };
}

/** Changes with the numbers from `from`. */
export const changesOf = (tenant: string, from: number, count: number) =>
  Array.from({ length: count }, (_, index) => changeOf(tenant, from + index));

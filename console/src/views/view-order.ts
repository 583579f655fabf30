/** What of a view its place depends on. */
export interface Placed {
  readonly id: string;
  readonly position: number;
}

/**
 * The new positions after one of the views, which stand in their order, moves to another place. One is enough while a number fits
 * between its new neighbours; if none does, all are counted anew.
 *
 * @example
 * positionsAfterMove([{ id: 'a', position: 1 }, { id: 'b', position: 2 }, { id: 'c', position: 3 }], 2, 1); // [{ id: 'c', position: 1.5 }]
 */
export function positionsAfterMove(views: readonly Placed[], from: number, to: number): Placed[] {
  const moved = views[from];
  if (moved === undefined || from === to) return [];
  const others = views.toSpliced(from, 1);
  const before = others[to - 1]?.position;
  const after = others[to]?.position;
  const position =
    before === undefined ? (after ?? 0) - 1 : after === undefined ? before + 1 : before + (after - before) / 2;
  const fits = (before === undefined || before < position) && (after === undefined || position < after);
  if (fits) return [{ id: moved.id, position }];
  return others
    .toSpliced(to, 0, moved)
    .map(({ id }, index) => ({ id, position: index + 1 }))
    .filter((one) => views.some(({ id, position: was }) => one.id === id && one.position !== was));
}

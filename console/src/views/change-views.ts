import type { SavedView } from '@annals/client';
import { annals } from '../api/annals.ts';
import { positionsAfterMove } from './view-order.ts';

/** Saves a view with some changes. Throws ApiError, conflict_resource, where somebody else has changed it since it was read. */
export async function changeView(
  view: SavedView,
  changes: Partial<Pick<SavedView, 'name' | 'q' | 'range' | 'position'>>,
) {
  await annals().views.put(view.id, { ...view, ...changes });
}

/** Moves a view to another place among these. */
export async function moveView(views: readonly SavedView[], from: number, to: number): Promise<void> {
  for (const { id, position } of positionsAfterMove(views, from, to)) {
    const view = views.find((one) => one.id === id);
    if (view !== undefined) await changeView(view, { position });
  }
}

import type { SavedView } from '@annals/client';
import { computed, signal } from '@preact/signals';
import { annals } from '../api/annals.ts';
import { allows, session } from '../api/session.ts';
import type { Target } from '../router/router.tsx';
import { positionsAfterMove } from './saved-views.ts';

/** A tenant has at most so many, so one page has all. */
const maxViews = 200;

const known = signal<{ readonly client: string; readonly views: readonly SavedView[] } | undefined>(undefined);

/** The saved views that were read last, in their order; undefined before. */
export const knownViews = computed(() =>
  known.value !== undefined && known.value.client === session.value?.client ? known.value.views : undefined,
);

/** Reads the saved views of the tenant, in their order. */
export async function readViews(abort?: AbortSignal): Promise<readonly SavedView[]> {
  const client = session.value?.client ?? '';
  const { items } = await annals().views.list({ sort: 'position', pageSize: maxViews }, { signal: abort });
  known.value = { client, views: items };
  return items;
}

/** Whether the session may save views. */
export function writesViews(): boolean {
  return allows('changelog.changelog_manage');
}

/** The address of a view. */
export function targetOfView(id: string): Target {
  return { path: 'history', parameters: { view: id } };
}

/** Saves a view with some changes. Throws ApiError, conflict_resource, if it has changed since it was read. */
export async function changeView(
  view: SavedView,
  changes: Partial<Pick<SavedView, 'name' | 'q' | 'range' | 'position'>>,
) {
  await annals().views.put(view.id, { ...view, ...changes });
}

/** Moves a view to another place among these. */
export async function moveView(views: readonly SavedView[], from: number, to: number): Promise<void> {
  for (const { id, position } of positionsAfterMove(views, from, to)) {
    const view = views.find((saved) => saved.id === id);
    if (view !== undefined) await changeView(view, { position });
  }
}

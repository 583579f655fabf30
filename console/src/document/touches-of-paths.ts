import type { Steps } from '@annals/client/json';
import type { Entry } from '../api/history-reads.ts';

/** A change of a document, with its place in the document's life: the first change is 1. */
export interface NumberedEntry {
  readonly number: number;
  readonly entry: Entry;
}

/** Who touched a field, and when last. */
interface Touches {
  readonly last: NumberedEntry;
  /** All who ever touched it, the latest first. */
  readonly actors: readonly Pick<Entry, 'actor' | 'actorId'>[];
}

/** The last change of each actor, the latest actor first. All are of one where the session sees no actors. */
type LastByActor = Map<string, NumberedEntry>;

/** Paths that a step looks at. */
const stepSize = 500;

/** Who touched a path: a change of it, of what contains it, or of what it contains. Takes the newest changes first. */
export function* touchesOfPaths(changes: Iterable<NumberedEntry>): Steps<(path: string) => Touches | undefined> {
  const own = new Map<string, LastByActor>();
  const inside = new Map<string, LastByActor>();
  let count = 0;
  for (const change of changes) {
    for (const path of change.entry.paths.keys()) {
      count += 1;
      if (count % stepSize === 0) yield;
      note(own, path, change);
      for (const container of containersOf(path)) note(inside, container, change);
    }
  }
  return (path) => {
    const touching = [own.get(path), inside.get(path), ...containersOf(path).map((container) => own.get(container))];
    const changesOfActors = touching.flatMap((byActor) => [...(byActor?.values() ?? [])]);
    const latestFirst = changesOfActors.toSorted((a, b) => b.number - a.number);
    const [last] = latestFirst;
    return last && { last, actors: firstOfEach(latestFirst) };
  };
}

function note(touched: Map<string, LastByActor>, path: string, change: NumberedEntry): void {
  const byActor = touched.get(path);
  const actor = identityOf(change.entry);
  if (byActor === undefined) touched.set(path, new Map([[actor, change]]));
  else if (!byActor.has(actor)) byActor.set(actor, change);
}

/** Tells actors apart: by their ids, or by the names of those without one. */
function identityOf({ actor, actorId }: Entry): string {
  return JSON.stringify(actorId === undefined ? { actor } : { actorId });
}

/** The entry of each actor that comes first, where the session sees actors. */
function firstOfEach(changes: readonly NumberedEntry[]): Entry[] {
  const seen = new Map<string, Entry>();
  for (const { entry } of changes) {
    const actor = identityOf(entry);
    if (entry.actor !== undefined && !seen.has(actor)) seen.set(actor, entry);
  }
  return [...seen.values()];
}

/** The paths that contain a path, the whole document too. A dot behind a backslash belongs to a key. */
function containersOf(path: string): string[] {
  const containers = path === '' ? [] : [''];
  for (let offset = 0; offset < path.length; offset += 1) {
    if (path[offset] === '\\') offset += 1;
    else if (path[offset] === '.') containers.push(path.slice(0, offset));
  }
  return containers;
}

import { finish, type JsonValue } from '@annals/client/json';
import { differences, isContainer, leavesOf } from '../../../../console/src/compare/compare-documents.ts';
import { objectLists } from '../../../../console/src/compare/list-table.tsx';
import type { Change } from '../reads/viewer-reads.ts';

/** What happened to a value without members, or to a list of objects: a side that is undefined was not there. */
export interface FieldOfChange {
  readonly path: string;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/**
 * The fields of a change. An object that was recorded as a whole is shown by what is in it, where it differs, and so is
 * a list, unless it is one of objects.
 */
export function fieldsOfChange({ paths }: Pick<Change, 'paths'>): FieldOfChange[] {
  return [...paths].flatMap(([path, { before, after }]) => {
    if (objectLists(before, after) !== undefined) return [{ path, before, after }];
    const isInside = before !== undefined && after !== undefined && isContainer(before) && isContainer(after);
    const found = isInside ? finish(differences(before, after)) : [];
    // Masks are the same on both sides, and are shown all the same: the field has changed.
    if (found.length === 0) return valuesOf({ path, before, after });
    return found.flatMap(([below, part]) =>
      valuesOf({ path: joined(path, below), before: part.before, after: part.after }),
    );
  });
}

/** What came or went as a whole, value by value. */
function valuesOf(field: FieldOfChange): FieldOfChange[] {
  const { path, before, after } = field;
  const only = before === undefined ? after : after === undefined ? before : undefined;
  if (only === undefined) return [field];
  return finish(leavesOf(only, true)).map(([below, value]) => ({
    path: joined(path, below),
    before: before === undefined ? undefined : value,
    after: after === undefined ? undefined : value,
  }));
}

function joined(path: string, below: string): string {
  return [path, below].filter((part) => part !== '').join('.');
}

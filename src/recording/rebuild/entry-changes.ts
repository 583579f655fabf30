import { entriesOf, memberOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import { keysOfPath } from '../../core/path-pattern.ts';
import type { ChangeType } from '../change.ts';
import { isPosition, type Marks } from '../path-list.ts';

/** The parts of an entry used by rebuilds. `paths` and `marks` are JSON texts. */
export interface RebuildEntry {
  type: ChangeType;
  paths: string;
  marks: string | null;
  /** Whether entries had marks when it was recorded. Otherwise null `marks` mean nothing. */
  isMarked: boolean;
}

/** A member of `paths`: the keys of its path (none for the document), and its values as JSON texts. */
export interface ChangedValue {
  keys: readonly string[];
  before: string | undefined;
  after: string | undefined;
}

/** A container above changed values. */
export interface Step {
  readonly steps: Map<string, Step>;
  kind: 'object' | 'array';
}

/** A parsed entry. */
export interface EntryChanges {
  type: ChangeType;
  values: readonly ChangedValue[];
  /** The containers above the paths, from the document down, with their kinds. */
  root: Step;
  kept: readonly (readonly string[])[];
  wasEmpty: readonly (readonly string[])[];
  isWhole: boolean;
  isMarked: boolean;
}

/** Whether the document is known from this entry on, regardless of earlier ones (contract 4). */
export function isAnchor({ type, paths, marks }: RebuildEntry): boolean {
  if (type === 'delete') return true;
  if (type === 'create') return paths !== '{}';
  return marks !== null && marksOf(marks).whole === true && paths !== '{}' && valuesOf(paths, {}).every(hasOnlyAfter);
}

export function hasOnlyAfter({ before, after }: ChangedValue): boolean {
  return before === undefined && after !== undefined;
}

export function changesOf({ type, paths, marks, isMarked }: RebuildEntry): EntryChanges {
  const marked = marks === null ? {} : marksOf(marks);
  const values = valuesOf(paths, marked);
  const root = stepsOf(values);
  const kindless: Step[] = [root];
  for (let step = kindless.pop(); step !== undefined; step = kindless.pop()) {
    if (step !== root && [...step.steps.keys()].every(isPosition)) step.kind = 'array';
    for (const next of step.steps.values()) if (next.steps.size > 0) kindless.push(next);
  }
  markObjects(root, marked.objects ?? []);
  const { kept = [], wasEmpty = [], whole = false } = marked;
  return {
    type,
    values,
    root,
    kept: kept.map(keysOfPath),
    wasEmpty: wasEmpty.map(keysOfPath),
    isWhole: whole,
    isMarked,
  };
}

function marksOf(marks: string): Marks {
  return JSON.parse(marks);
}

function valuesOf(paths: string, { root = false }: { root?: boolean }): ChangedValue[] {
  return entriesOf(parseJson(paths)).map(([path, value], _index, all) => {
    const before = memberOf(value, 'before');
    const after = memberOf(value, 'after');
    return {
      // With other paths present, the path "" can only be a key.
      keys: path === '' && all.length === 1 && !root ? [] : keysOfPath(path),
      before: before === undefined ? undefined : compactText(before),
      after: after === undefined ? undefined : compactText(after),
    };
  });
}

function emptyStep(): Step {
  return { steps: new Map(), kind: 'object' };
}

function stepsOf(values: readonly ChangedValue[]): Step {
  const root = emptyStep();
  for (const { keys } of values) {
    let step = root;
    for (const key of keys) step = step.steps.getOrInsertComputed(key, emptyStep);
  }
  return root;
}

function markObjects(root: Step, objects: NonNullable<Marks['objects']>): void {
  const places: (Step | undefined)[] = [root];
  for (let index = 0; index < objects.length; index += 2) {
    let step = places[Number(objects[index])];
    for (const key of keysOfPath(String(objects[index + 1]))) step = step?.steps.get(key);
    if (step !== undefined) step.kind = 'object';
    places.push(step);
  }
}

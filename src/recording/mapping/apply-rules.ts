import { maximumImportDepth, parseJson, parseOnTape } from '../../core/json/parse.ts';
import {
  braceByte,
  bracketByte,
  cellsOfNode,
  firstByte,
  firstChild,
  type JsonNode,
  JsonTape,
  nextChild,
} from '../../core/json/tape.ts';
import { compactText, decodedString, sourceText } from '../../core/json/text.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { mask } from '../../core/sealing.ts';
import { isUnchanged } from '../paths.ts';
import type { TableMapping, ValueRules } from './mapping.ts';

/** Both sides of a change, each optional. */
export interface Sides {
  before?: JsonNode | undefined;
  after?: JsonNode | undefined;
}

/**
 * Drops ignored values and replaces masked ones, except null, with `********`. Masked values that differ between the
 * sides are marked as changed in the new `after` (`JsonTape.unequal`). The result never contains masked texts.
 *
 * A pattern applies to each element of an array; a key of digits is also a position. With `tapes`, the result is valid
 * until their next use.
 */
export function applyRules(rules: CompiledRules, { before, after }: Sides, tapes?: ReusedTapes): Sides {
  if (rules.isEmpty) return { before, after };
  const old = before === undefined ? undefined : new Writer([rules.root], before);
  const changed = after === undefined ? undefined : new Writer([rules.root], after);
  const parsed = (writer: Writer | undefined, tape: ReusedTape | undefined) =>
    writer && (tape === undefined ? parseJson(writer.text) : tape.parse(writer.text));
  const result: Sides = { before: parsed(old, tapes?.before), after: parsed(changed, tapes?.after) };
  if (old === undefined || changed === undefined || result.after === undefined) return result;
  const unequal = new Set<number>();
  for (const [path, { node, position }] of changed.masked) {
    const oldMasked = old.masked.get(path);
    if (oldMasked !== undefined && !isUnchanged(oldMasked.node, node)) unequal.add(position);
  }
  if (unequal.size > 0) result.after.tape.unequal = unequal;
  return result;
}

/**
 * Applies the rules to one value, as JSON text; undefined if it is ignored. Digits match as a key and as a position.
 */
export function applyRulesAt({ root }: CompiledRules, keys: readonly string[], value: JsonNode): string | undefined {
  let steps: readonly Step[] = [root];
  for (const key of keys) {
    if (steps.some(({ action }) => action === 'mask')) break;
    const below = stepsBelow(steps, key);
    if (below.some(({ action }) => action === 'ignore')) return undefined;
    steps = /^\d+$/.test(key) ? [...steps, ...below] : below;
  }
  return new Writer(steps, value).text;
}

/** Rules as a tree of keys. */
export interface CompiledRules {
  readonly isEmpty: boolean;
  readonly root: Step;
}

interface Step {
  readonly keys: Map<string, Step>;
  any: Step | undefined;
  action: 'ignore' | 'mask' | undefined;
}

const compiled = new WeakMap<ValueRules, CompiledRules>();

/** Compiles rules for `applyRules`, once. */
export function compileRules(rules: ValueRules): CompiledRules {
  return compiled.getOrInsertComputed(rules, () => {
    const root = newStep();
    for (const pattern of rules.mask) lastStep(root, pattern).action = 'mask';
    // Ignore takes precedence over mask: the value is not stored.
    for (const pattern of rules.ignore) lastStep(root, pattern).action = 'ignore';
    return { isEmpty: rules.mask.length + rules.ignore.length === 0, root };
  });
}

const compiledMasks = new WeakMap<ValueRules, CompiledRules>();

/** Compiles only the masks, once, for contexts: ignores apply to documents only. */
export function compileMasks(rules: ValueRules): CompiledRules {
  return compiledMasks.getOrInsertComputed(rules, () => compileRules({ mask: rules.mask, ignore: [] }));
}

function newStep(): Step {
  return { keys: new Map(), any: undefined, action: undefined };
}

function lastStep(root: Step, { keys }: PathPattern): Step {
  let step = root;
  for (const key of keys) {
    if (key === null) {
      step.any ??= newStep();
      step = step.any;
    } else step = step.keys.getOrInsertComputed(key, newStep);
  }
  return step;
}

function stepsBelow(steps: readonly Step[], key: string): Step[] {
  return steps.flatMap((step) => [step.keys.get(key) ?? [], step.any ?? []].flat());
}

interface Masked {
  node: JsonNode;
  /** The offset of its mask in the written text. */
  position: number;
}

interface Frame {
  isArray: boolean;
  /** The next key or element, or -1 after the last. */
  next: number;
  index: number;
  isFirst: boolean;
  steps: readonly Step[];
  path: string;
}

/** Writes a document by the rules. Iterative, since documents nest deeper than the call stack. */
class Writer {
  readonly masked = new Map<string, Masked>();
  readonly #tape: JsonTape;
  readonly #pieces: string[] = [];
  readonly #frames: Frame[] = [];
  #bytes = 0;

  constructor(steps: readonly Step[], { tape, node }: JsonNode) {
    this.#tape = tape;
    this.#value(node, steps, '');
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
      if (frame.next === -1) {
        this.#write(frame.isArray ? ']' : '}');
        this.#frames.pop();
      } else this.#child(frame);
    }
  }

  get text(): string {
    return this.#pieces.join('');
  }

  #child(frame: Frame): void {
    const child = frame.next;
    frame.next = nextChild(this.#tape, child);
    const key = frame.isArray ? String(frame.index) : decodedString(this.#tape, child);
    frame.index += 1;
    const below = stepsBelow(frame.steps, key);
    if (below.some(({ action }) => action === 'ignore')) return;
    if (!frame.isFirst) this.#write(',');
    frame.isFirst = false;
    if (!frame.isArray) this.#write(`${sourceText({ tape: this.#tape, node: child })}:`);
    const steps = frame.isArray ? [...frame.steps.filter(({ action }) => action === undefined), ...below] : below;
    this.#value(frame.isArray ? child : child + cellsOfNode, steps, `${frame.path}.${JSON.stringify(key)}`);
  }

  #value(node: number, steps: readonly Step[], path: string): void {
    const kind = firstByte(this.#tape, node);
    const value: JsonNode = { tape: this.#tape, node };
    const isArray = kind === bracketByte;
    if (steps.some(({ action }) => action === 'mask') && kind !== nullByte) {
      this.masked.set(path, { node: value, position: this.#bytes });
      this.#write(maskText);
    } else if (steps.length === 0 || !(isArray || kind === braceByte)) {
      this.#write(compactText(value));
    } else {
      this.#write(isArray ? '[' : '{');
      this.#frames.push({ isArray, next: firstChild(this.#tape, node), index: 0, isFirst: true, steps, path });
    }
  }

  #write(piece: string): void {
    this.#pieces.push(piece);
    this.#bytes += Buffer.byteLength(piece);
  }
}

const nullByte = 0x6e;
const maskText = JSON.stringify(mask);

/** A tape that grew larger than this is replaced. */
const cellsToKeep = 1024 * 1024;

/** Reuses a tape, since allocating one costs more than parsing a document. A node is valid until the next call. */
export class ReusedTape {
  #tape = new JsonTape();

  /** Throws `JsonSyntaxError`. */
  parse(text: string): JsonNode {
    if (this.#tape.cells.length > cellsToKeep) this.#tape = new JsonTape();
    const tape = this.#tape;
    const bytes = Buffer.from(text);
    parseOnTape(tape, bytes, 0, bytes.length, maximumImportDepth);
    if (text.length === bytes.length) tape.ascii = text;
    return { tape, node: 0 };
  }
}

/** For the two sides of a change. */
export class ReusedTapes {
  readonly before = new ReusedTape();
  readonly after = new ReusedTape();
}

/** The rules of a table. Rules that ignore whole columns are separate, since they are cheap. */
interface RowRules {
  /** Columns ignored as a whole. */
  readonly ignored: ReadonlySet<string>;
  /** All other rules. */
  readonly rest: CompiledRules;
  /** Masks only: a context may show an ignored column. */
  readonly masks: CompiledRules;
}

const prepared = new WeakMap<ValueRules, RowRules>();

/** Compiles the rules of a table, once. */
export function rowRules({ rules }: TableMapping): RowRules {
  return prepared.getOrInsertComputed(rules, ({ mask: masks, ignore }) => ({
    ignored: new Set(ignore.flatMap((pattern) => wholeColumn(pattern) ?? [])),
    rest: compileRules({ mask: masks, ignore: ignore.filter((pattern) => wholeColumn(pattern) === undefined) }),
    masks: compileMasks(rules),
  }));
}

function wholeColumn({ keys: [column, ...rest] }: PathPattern): string | undefined {
  return rest.length === 0 ? (column ?? undefined) : undefined;
}

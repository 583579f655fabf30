import { Settings } from 'typebox/system';
import { compiledOnce } from '../../core/compiled-once.ts';
import { parseJson } from '../../core/json/parse.ts';
import {
  braceByte,
  bracketByte,
  cellAt,
  cellsOfNode,
  endCell,
  firstByte,
  firstChild,
  type JsonNode,
  JsonSyntaxError,
  nextChild,
} from '../../core/json/tape.ts';
import { decodedString } from '../../core/json/text.ts';
import type { Mapping } from './mapping.ts';
import { type MappingFault, mappingOfFile, parsedMapping } from './mapping-of-file.ts';
import { MappingFile } from './mapping-schema.ts';

/** All faults of a mapping together. */
export class MappingError extends Error {
  readonly faults: readonly MappingFault[];

  constructor(faults: readonly MappingFault[]) {
    super(
      faults.map(({ path, message }) => (path.length === 0 ? message : `${path.join(' → ')}: ${message}`)).join('\n'),
    );
    this.name = 'MappingError';
    this.faults = faults;
  }
}

const check = compiledOnce(MappingFile);
const maxFaults = 50;

/**
 * Reads the text of a mapping. Throws a `MappingError` with every fault and its path.
 *
 * @example
 * const mapping = readMapping(await readFile('mapping.json', 'utf8'));
 * mapping.tables.get('public.orders')?.entity; // 'order'
 */
export function readMapping(text: string): Mapping {
  const file = parsed(text);
  if (!check().Check(file)) throw new MappingError(schemaFaults(file));
  const { mapping, faults } = mappingOfFile(file);
  if (faults.length > 0) throw new MappingError(faults.slice(0, maxFaults));
  return mapping;
}

function parsed(text: string): unknown {
  let node: JsonNode;
  try {
    node = parseJson(text.replace(/^\uFEFF/, ''), maxDepth);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new MappingError([{ path: [], message: `is no JSON: ${error.message}` }]);
  }
  const repeated = repeatedKey(node);
  // JSON.parse would silently drop the first of two rules for a table.
  if (repeated !== undefined)
    throw new MappingError([{ path: [], message: `has the key ${repeated} twice in one object` }]);
  return parsedMapping(text);
}

const maxDepth = 20;

/** A duplicate key of an object. The parser links only the last of equal keys. */
function repeatedKey({ tape, node }: JsonNode): string | undefined {
  const linked = new Set<number>();
  const open = [node];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    linked.add(value);
    const kind = firstByte(tape, value);
    if (kind !== braceByte && kind !== bracketByte) continue;
    for (let child = firstChild(tape, value); child !== -1; child = nextChild(tape, child)) {
      if (kind === braceByte) linked.add(child);
      open.push(kind === braceByte ? child + cellsOfNode : child);
    }
  }
  for (let cell = node; cellAt(tape.cells, cell + endCell) > 0; cell += cellsOfNode) {
    if (!linked.has(cell)) return decodedString(tape, cell);
  }
  return undefined;
}

function schemaFaults(file: unknown): MappingFault[] {
  return withoutAlternatives(allErrors(file))
    .filter(({ keyword }) => keyword !== 'additionalProperties')
    .slice(0, maxFaults)
    .map(({ instancePath, keyword, message, params }) => {
      const path = instancePath
        .split('/')
        .slice(1)
        .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
      if (keyword === 'boolean') return { path, message: 'is not a key that this object can have' };
      if (keyword === 'const' && 'allowedValue' in params)
        return { path, message: `must be ${JSON.stringify(params.allowedValue)}` };
      if (keyword === 'enum' && 'allowedValues' in params)
        return { path, message: `must be one of ${JSON.stringify(params.allowedValues)}` };
      return { path, message };
    });
}

/**
 * Of a value that may have several types: the faults by its own type alone, or one fault with all types that it may
 * have.
 */
function withoutAlternatives(errors: SchemaErrors): SchemaErrors {
  const unions = new Set(errors.flatMap(({ keyword, instancePath }) => (keyword === 'anyOf' ? [instancePath] : [])));
  const isOfType = ({ keyword, instancePath }: SchemaErrors[number]) =>
    unions.has(instancePath) && (keyword === 'type' || keyword === 'anyOf');
  const others = errors.filter((error) => !isOfType(error));
  return errors.flatMap((error) => {
    const { keyword, instancePath: path } = error;
    if (!isOfType(error)) return [error];
    const isFaulty = others.some(({ instancePath }) => instancePath === path || instancePath.startsWith(`${path}/`));
    if (isFaulty || keyword === 'type') return [];
    const types = errors.flatMap((other) =>
      other.keyword === 'type' && other.instancePath === path ? [other.message.replace('must be ', '')] : [],
    );
    return [{ ...error, message: `must be ${types.join(' or ')}` }];
  });
}

type SchemaErrors = ReturnType<typeof allErrors>;

/** TypeBox stops at 8 errors. The limit is global, so it is raised for this call only. */
function allErrors(file: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: maxFaults * 2 });
  try {
    return check().Errors(file);
  } finally {
    Settings.Set({ maxErrors });
  }
}

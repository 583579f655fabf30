import { AnnalsError } from '../../core/errors.ts';
import { maxDocument } from '../../core/json/measure.ts';
import { elementsOf, kindOf, membersOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { applyPatch, maxPatchedLevels } from '../../core/json/patch.ts';
import { PatchFault, type PatchOperation, parsePointer } from '../../core/json/patch-operation.ts';
import type { JsonNode } from '../../core/json/tape.ts';

export const maxOperations = 1_000;

/** An operation with its pointers verbatim. */
interface Operation {
  readonly operation: PatchOperation;
  readonly path: string;
  readonly from: string;
}

/**
 * Applies a patch (RFC 6902) to a document, completely or not at all; both are JSON texts. Throws conflict_resource if
 * a `test` fails, payload_too_large before the document exceeds its limits, and validation_violation for any other
 * error, such as a missing target.
 */
export function patchDocument(document: string, patch: string): string {
  const read = readOperations(patch);
  try {
    return applyPatch(
      parseJson(document),
      read.map(({ operation }) => operation),
    );
  } catch (error) {
    const operation = error instanceof PatchFault ? read[error.index] : undefined;
    throw operation === undefined || !(error instanceof PatchFault) ? error : refusalOf(error, operation);
  }
}

function refusalOf({ index, reason, at }: PatchFault, operation: Operation): AnnalsError {
  const pointer = operation[at];
  switch (reason) {
    case 'test failed':
      return new AnnalsError('conflict_resource', 'The document differs from the one that the patch expects.', {
        details: [{ field: String(index), message: `the test of ${pointer} failed` }],
      });
    case 'too many bytes':
    case 'too many values': {
      const limit = reason === 'too many bytes' ? `${maxDocument.bytes} bytes` : `${maxDocument.values} JSON values`;
      return new AnnalsError('payload_too_large', `An instance has at most ${limit}.`, {
        details: [{ field: String(index), message: `the document would have more than ${limit}` }],
      });
    }
    case 'no place':
      return invalid(index, `there is no place at ${pointer}`);
    case 'nothing':
    case 'beyond':
      return invalid(index, `there is nothing at ${pointer}`);
    case 'document':
      return invalid(index, 'the document itself stays');
    case 'into itself':
      return invalid(index, 'a value cannot move into itself');
    case 'too deep':
      return invalid(index, `nested deeper than ${maxPatchedLevels} levels`);
    case 'too much moved':
      return invalid(index, 'the patch adds, moves or copies more than 4 MiB or 400,000 JSON values');
  }
}

function readOperations(patch: string): Operation[] {
  const list = parseJson(patch);
  if (kindOf(list) !== 'array') throw new AnnalsError('validation_violation', 'A patch is an array of operations.');
  const elements = elementsOf(list);
  if (elements.length > maxOperations) {
    throw new AnnalsError('validation_violation', `A patch has at most ${maxOperations} operations.`);
  }
  return elements.map(readOperation);
}

const operationNames = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const;

function readOperation(node: JsonNode, index: number): Operation {
  const members = kindOf(node) === 'object' ? membersOf(node) : new Map<string, JsonNode>();
  const name = stringOf(members.get('op'));
  const op = operationNames.find((operation) => operation === name);
  if (op === undefined) throw invalid(index, `op must be one of ${operationNames.join(', ')}`, 'op');
  const value = members.get('value');
  if (op === 'add' || op === 'replace' || op === 'test') {
    if (value === undefined) throw invalid(index, `${op} needs a value`, 'value');
    const { keys, text } = pointerOf(members, index, 'path');
    return { operation: { op, path: keys, value }, path: text, from: '' };
  }
  if (op === 'remove') {
    const { keys, text } = pointerOf(members, index, 'path');
    return { operation: { op, path: keys }, path: text, from: '' };
  }
  const from = pointerOf(members, index, 'from');
  const path = pointerOf(members, index, 'path');
  return { operation: { op, path: path.keys, from: from.keys }, path: path.text, from: from.text };
}

function pointerOf(
  members: ReadonlyMap<string, JsonNode>,
  index: number,
  field: 'path' | 'from',
): { keys: string[]; text: string } {
  const text = stringOf(members.get(field));
  const keys = text === undefined ? undefined : parsePointer(text);
  if (text !== undefined && keys !== undefined) return { keys, text };
  throw invalid(index, `${field} must be a JSON Pointer`, field);
}

function invalid(index: number, message: string, field?: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The patch cannot be applied.', {
    details: [{ field: field === undefined ? String(index) : `${index}.${field}`, message }],
  });
}

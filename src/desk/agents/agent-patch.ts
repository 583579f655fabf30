import { AnnalsError } from '../../core/errors.ts';
import { maxDocument } from '../../core/json/measure.ts';
import { parseJson } from '../../core/json/parse.ts';
import { applyPatch } from '../../core/json/patch.ts';
import { PatchFault, type PatchOperation, parsePointer } from '../../core/json/patch-operation.ts';
import type { AgentDocument } from './answer-schemas.ts';
import type { AgentPatch } from './schemas.ts';

/**
 * Applies a list of ADD, REMOVE and REPLACE (contract 8) to the JSON text of an agent, completely or not at all, and
 * returns the new text. `before` is that agent. Throws validation_violation for a missing path, and payload_too_large
 * before the agent exceeds its limits.
 */
export function patchedText(document: string, before: Texts, patch: AgentPatch): string {
  const operations = patch.map((operation, index) => readOperation(inOneLanguage(operation, before), index));
  try {
    return applyPatch(parseJson(document), operations);
  } catch (error) {
    throw error instanceof PatchFault ? refusalOf(error) : error;
  }
}

/** The members of an agent that are maps by language. */
type Texts = Pick<AgentDocument, 'name' | 'description'>;

/**
 * Clients of the API family write a plain text as name or description. It replaces the text in the displayed language:
 * English, or else the agent's first.
 */
function inOneLanguage(operation: AgentPatch[number], before: Texts): AgentPatch[number] {
  const { path, value } = operation;
  const [key, ...rest] = keysOf(path);
  if (typeof value !== 'string' || rest.length > 0 || (key !== 'name' && key !== 'description')) return operation;
  const texts = before[key];
  if (texts === undefined) return { ...operation, value: { en: value } };
  const language = texts.en === undefined ? (Object.keys(texts)[0] ?? 'en') : 'en';
  return { ...operation, path: `/${key}/${language}` };
}

function readOperation({ op, path, value }: AgentPatch[number], index: number): PatchOperation {
  const keys = keysOf(path);
  if (keys.length === 0) throw invalid(`${index}.path`, 'the agent itself stays');
  if (op.toUpperCase() === 'REMOVE') return { op: 'remove', path: keys };
  if (value === undefined) throw invalid(`${index}.value`, 'is required');
  return { op: op.toUpperCase() === 'ADD' ? 'add' : 'replace', path: keys, value: parseJson(JSON.stringify(value)) };
}

/** Parses a JSON Pointer, or keys separated by dots. */
function keysOf(path: string): string[] {
  if (path === '') return [];
  return path.startsWith('/') ? (parsePointer(path) ?? path.split('/').slice(1)) : path.split('.');
}

function refusalOf({ index, reason }: PatchFault): AnnalsError {
  switch (reason) {
    case 'nothing':
      return invalid(`${index}.path`, 'leads to nothing in the agent');
    case 'too many bytes':
    case 'too much moved':
      return tooLarge(`${maxDocument.bytes} bytes`);
    case 'too many values':
      return tooLarge(`${maxDocument.values} JSON values`);
    default:
      return invalid(`${index}.path`, 'leads to no place in the agent');
  }
}

function tooLarge(limit: string): AnnalsError {
  return new AnnalsError('payload_too_large', `An agent has at most ${limit}.`);
}

function invalid(field: string, message: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The patch cannot be applied.', { details: [{ field, message }] });
}

import { AnnalsError } from '../errors.ts';
import type { AgentPatch } from './schemas.ts';

type Container = Record<string, unknown> | unknown[];

/**
 * Applies a list of ADD, REMOVE and REPLACE (contract 8) to a copy of a document. Throws validation_violation where an
 * operation finds no place; then nothing is applied.
 */
export function patched(document: object, patch: AgentPatch): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(document));
  for (const [index, { op, path, value }] of patch.entries()) {
    const refuse = (message: string, field = 'path') => invalid(`${index}.${field}`, message);
    const keys = keysOf(path);
    const last = keys.pop();
    if (last === undefined) throw refuse('the agent itself stays');
    const parent = keys.reduce<unknown>(memberOf, copy);
    if (!isContainer(parent)) throw refuse('leads to no place in the agent');
    const operation = op.toUpperCase();
    if (operation !== 'REMOVE' && value === undefined) throw refuse('is required', 'value');
    if (operation !== 'ADD' && memberOf(parent, last) === undefined) throw refuse('leads to nothing in the agent');
    if (!change(parent, last, operation, value)) throw refuse('leads to no place in the agent');
  }
  return copy;
}

function change(parent: Container, key: string, operation: string, value: unknown): boolean {
  if (!Array.isArray(parent)) {
    if (operation === 'REMOVE') delete parent[key];
    // Not an assignment: `__proto__` is a key like others.
    else Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
    return true;
  }
  const index = key === '-' && operation === 'ADD' ? parent.length : indexOf(key);
  if (index === undefined || index > parent.length) return false;
  if (operation === 'ADD') parent.splice(index, 0, value);
  else if (operation === 'REMOVE') parent.splice(index, 1);
  else parent[index] = value;
  return true;
}

/** A JSON Pointer, or keys with dots between them. */
function keysOf(path: string): string[] {
  if (!path.startsWith('/')) return path === '' ? [] : path.split('.');
  return path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function memberOf(parent: unknown, key: string): unknown {
  if (Array.isArray(parent)) {
    const index = indexOf(key);
    return index === undefined ? undefined : parent[index];
  }
  return isContainer(parent) && !Array.isArray(parent) && Object.hasOwn(parent, key) ? parent[key] : undefined;
}

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

function indexOf(key: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,8})$/.test(key) ? Number(key) : undefined;
}

function invalid(field: string, message: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The patch cannot be applied.', { details: [{ field, message }] });
}

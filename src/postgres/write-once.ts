import { randomUUID } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { hasCode } from '../core/errors.ts';

/**
 * Writes a file if it does not exist. Returns its content: this one, or that of a faster process. Atomic: also after a
 * crash, the file is complete or missing.
 */
export async function writeOnce(path: string, content: string, mode = 0o600): Promise<string> {
  const existing = await readIfThere(path);
  if (existing !== undefined) return existing;
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeThrough(draft, content, mode);
    await link(draft, path);
    return content;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return await readFile(path, 'utf8');
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** The text of a file, or undefined if it does not exist. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function writeThrough(path: string, content: string, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

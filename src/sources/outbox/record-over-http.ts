import { lineOfChange } from '../../recording/mapping/line-of-change.ts';
import { RefusedChangesError, type SourceChange } from '../../recording/mapping/record-mapped.ts';
import type { SourceLog } from '../source-log.ts';
import { RecorderClient, type RecorderTarget } from './recorder-client.ts';
import type { RelayOptions } from './relay.ts';

export interface HttpRecording {
  readonly target: RecorderTarget;
  readonly strict: boolean;
  readonly log: SourceLog;
}

/**
 * Limits of a request. They are below those of the recorder (recording.md 4), because the recorder may measure a
 * request as slightly larger.
 */
const maxLines = 2_000;
const maxBytes = 7 * 1024 * 1024;

/**
 * Records through a recorder (docs/decisions/outbox.md). Each change has an id that is made of its row in the outbox, so what is sent again is a
 * duplicate there. The order of the changes is kept, also over several requests.
 */
export function recordOverHttp({ target, strict, log }: HttpRecording): RelayOptions['record'] {
  const client = new RecorderClient(target);

  async function send(lines: readonly Line[]): Promise<void> {
    const result = await client.send(
      lines.map(({ text }) => text),
      { strict },
    );
    if (result.kind === 'refused') throw new RefusedChangesError(result.message, {});
    if (result.kind === 'taken') {
      for (const { index, reason } of result.rejected) {
        const position = lines[index]?.position ?? '';
        log.warn(
          { place: position, reason: lines[index]?.reason ?? reason },
          'a change can never be recorded, and the recorder keeps it aside',
        );
      }
      return;
    }
    const [first] = lines;
    if (first === undefined) return;
    if (lines.length > 1) {
      const half = Math.ceil(lines.length / 2);
      await send(lines.slice(0, half));
      await send(lines.slice(half));
      return;
    }
    const reason = 'is larger than the recorder takes';
    if (strict || first.stub === undefined)
      throw new RefusedChangesError(`the change at ${first.position} ${reason}`, {});
    await send([{ text: first.stub, position: first.position, reason, stub: undefined }]);
  }

  return async (changes) => {
    let lines: Line[] = [];
    let bytes = 0;
    for (const change of changes) {
      const line = lineOf(change, target.tenant, strict);
      if (line === undefined) continue;
      const size = Buffer.byteLength(line.text) + 1;
      if (lines.length > 0 && (lines.length === maxLines || bytes + size > maxBytes)) {
        await send(lines);
        lines = [];
        bytes = 0;
      }
      lines.push(line);
      bytes += size;
    }
    if (lines.length > 0) await send(lines);
  };
}

interface Line {
  readonly text: string;
  readonly position: string;
  /** Why the relay knows that it will be rejected. */
  readonly reason?: string | undefined;
  /** What is sent in its place where it is too large: the recorder rejects it, and keeps where it came from. */
  readonly stub: string | undefined;
}

function lineOf({ mapped, position, content }: SourceChange, tenant: string, strict: boolean): Line | undefined {
  if (mapped.kind === 'unchanged') return undefined;
  const stub = JSON.stringify({ place: position });
  if (mapped.kind === 'rejected') {
    const { reason } = mapped;
    if (strict) throw new RefusedChangesError(`1 change was rejected: that at ${position}: ${reason}`, {});
    return { text: mapped.content, position, reason, stub };
  }
  if (mapped.tenant !== tenant) throw new Error('a relay to a recorder records for one tenant');
  const id = `annals:relay:${Buffer.from(mapped.change.identity).toString('hex')}`;
  return { text: lineOfChange(mapped.change, content(), id), position, stub };
}

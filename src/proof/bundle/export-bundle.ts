import { AnnalsError, OperatorError } from '../../core/errors.ts';
import type { ExportHistory, ExportPiece, ExportRequest } from '../../core/export-history.ts';
import { doWork } from '../../core/fairness/work.ts';
import type { ReadBundle } from './lines.ts';
import { formatLine } from './write-bundle.ts';

const maxPiece = 1024 * 1024;
/** Leaves are in the order of positions, so a bundle needs no snapshot. */
const noSnapshot = '1:1:';

/** Exports with bundles: see `ExportRequest.proof`. */
export function withProofs(exports: ExportHistory, readBundle: ReadBundle, pieceBytes = maxPiece): ExportHistory {
  return {
    ...exports,
    run: (request, take) =>
      request.proof === true ? exportProof(readBundle, request, { pieceBytes, take }) : exports.run(request, take),
  };
}

/**
 * Passes a bundle to `take`, in parts that end with a block of positions, so that an interrupted export resumes with
 * the next one. Throws conflict_resource where the history cannot be bundled now.
 */
async function exportProof(
  readBundle: ReadBundle,
  { tenant, q, withContext, resume, signal }: ExportRequest,
  { pieceBytes, take }: { pieceBytes: number; take: (piece: ExportPiece) => Promise<void> },
): Promise<void> {
  // `since` holds the size of the checkpoint, and `after` the next block.
  const resumed = resume && { size: resume.since, block: resume.after.at };
  let [text, entries, block, size] = ['', 0, resumed?.block ?? 0, resumed?.size ?? 0];
  let isFirst = resumed === undefined;
  const flush = async () => {
    const of = { snapshot: noSnapshot, placement: null, since: size };
    await take({ text, entries, last: { at: block, sequence: 0 }, of, isFirst });
    [text, entries, isFirst] = ['', 0, false];
  };
  try {
    await doWork({ tenant, signal, stepLimit: Number.POSITIVE_INFINITY }, async () => {
      const lines = readBundle(tenant, {
        q: q === '' ? undefined : q,
        withContext: withContext === true,
        resume: resumed,
      });
      for await (const line of lines) {
        signal.throwIfAborted();
        text += formatLine(line);
        if (line.kind === 'header') size = sizeOf(line.checkpoint);
        if (line.kind === 'entry') entries += 1;
        if (line.kind === 'tile') block = line.index + 1;
        if (line.kind === 'tile' && text.length >= pieceBytes) await flush();
      }
      // The reader checks for new receipts at its end: only then is the bundle complete.
      await flush();
    });
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    throw new AnnalsError('conflict_resource', `The history cannot be proved now: ${error.message}.`, { cause: error });
  }
}

function sizeOf(checkpoint: string): number {
  return Number(checkpoint.split('\n')[1]);
}

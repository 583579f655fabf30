import { createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { pino } from 'pino';
import { OperatorError } from '../../core/errors.ts';
import { type FileLock, tryFileLock } from '../../postgres/embedded/file-lock.ts';
import { CheckpointFile } from '../../proof/log/checkpoint-file.ts';
import { formatVerifierKey, signatureTypes, type Verifier, verifierOf } from '../../proof/log/note.ts';
import { parseLogs } from '../../proof/log/policy.ts';
import { readSigningKey } from '../../proof/log/signer.ts';
import { buildWitness } from '../../proof/witness/add-checkpoint.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { listen } from '../listen.ts';

const defaultPort = 8_090;

export const command: Command = {
  help: `Usage: annals witness --name NAME --key FILE --logs FILE [--host HOST] [--port PORT]

Runs a witness of logs, on another machine than the service: POST /add-checkpoint of C2SP's
tlog-witness. It signs a checkpoint only if the log's own key did, and if it extends the newest
one that this witness signed. So a log that was rolled back, or that shows different histories
to different people, gets no signature.

  --name NAME   the name of the witness: example.org/witness-1
  --key FILE    its key, made by "annals proof key FILE"; FILE.logs beside it keeps the newest
                checkpoint of each log: keep the two together. Only one witness may use them
                at a time
  --logs FILE   the logs that it knows, as "annals proof logs" prints them; reread on change
  --host HOST   default: 127.0.0.1
  --port PORT   default: ${defaultPort}; 0: any free port

Prints the line for a policy, and its address. TLS is left to a reverse proxy.

Example:
  annals witness --name example.org/witness-1 --key witness.key --logs logs.txt`,

  async run(args, io) {
    const { values } = parseCommand('witness', {
      args,
      options: {
        name: { type: 'string' },
        key: { type: 'string' },
        logs: { type: 'string' },
        host: { type: 'string', default: '127.0.0.1' },
        port: { type: 'string', default: String(defaultPort) },
      },
    });
    const { name, key, logs, host } = values;
    if (name === undefined || key === undefined || logs === undefined) {
      throw new UsageError('witness needs --name, --key and --logs');
    }
    const port = /^\d{1,5}$/.test(values.port) ? Number(values.port) : 65_536;
    if (port > 65_535) throw new UsageError('--port is a number from 0 to 65535');
    const privateKey = readSigningKey(key, `--key names ${key}`);
    const signer = { ...witnessOf(name, createPublicKey(privateKey)), privateKey };
    const lock = lockState(`${key}.logs`);
    const signed = CheckpointFile.open(`${key}.logs`);
    const logger = pino({ level: io.environment.LOG_LEVEL ?? 'info' }, io.stderr);
    const app = buildWitness({ signer, logs: followLogs(logs), signed, now: Date.now }, logger);
    try {
      const url = await listen(app, { host, port }, 'PORT', 'witness');
      io.answer(`witness ${name} ${formatVerifierKey(signer)} ${url}`);
      if (!io.stop.aborted) await once(io.stop, 'abort');
      return 0;
    } finally {
      await app.close();
      signed.close();
      lock.release();
    }
  },
};

/** Of two witnesses with one file, each would refuse what the other signed. The lock ends with the process. */
function lockState(file: string): FileLock {
  const lock = tryFileLock(`${file}.lock`, 'exclusive');
  if (lock !== undefined) return lock;
  throw new OperatorError(`another annals witness uses ${file}: one runs at a time`);
}

function witnessOf(name: string, publicKey: Verifier['publicKey']): Verifier {
  try {
    return verifierOf(name, signatureTypes.cosignature, publicKey);
  } catch (error) {
    throw new UsageError(`--name: ${error instanceof Error ? error.message : ''}`);
  }
}

/** The logs of a file, which is reread when it changes. */
function followLogs(file: string): () => readonly Verifier[] {
  let known = { changed: Number.NaN, logs: [] as readonly Verifier[] };
  const read = () => {
    const changed = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.NaN;
    if (changed !== known.changed) known = { changed, logs: readLogs(file) };
    return known.logs;
  };
  read();
  return read;
}

function readLogs(file: string): readonly Verifier[] {
  try {
    return parseLogs(readFileSync(file, 'utf8'));
  } catch (error) {
    const reason = error instanceof RangeError ? `: ${error.message}` : ' cannot be read';
    throw new OperatorError(`--logs: ${file}${reason}`, { cause: error });
  }
}

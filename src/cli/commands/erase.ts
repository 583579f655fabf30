import { readFile } from 'node:fs/promises';
import { readInstallationId } from '../../access/oauth/service.ts';
import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import { parsePathPattern } from '../../core/path-pattern.ts';
import { rest } from '../../core/repeat.ts';
import { prepareCertificate, writeCertificate } from '../../history/erasure/certificate.ts';
import { type EraseOptions, eraseSubject, findSubject } from '../../history/erasure/erase.ts';
import { linesOfErasures } from '../../history/erasure/erasures-file.ts';
import { type ErasureReason, erasureReasons, type NamedPaths, type Subject } from '../../history/erasure/subject.ts';
import { type VacuumedTable, vacuumTables } from '../../history/erasure/vacuum-tables.ts';
import type { Database } from '../../postgres/database.ts';
import type { Signer } from '../../proof/log/note.ts';
import { hostOfLogs, openSigner } from '../../proof/log/signer.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { ProgressLine } from '../progress-line.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals erase --tenant T --actor NAME --reason R (--dry-run | --yes)
       annals erase --tenant T --actor-id ID [--context NAMES] --reason R (--dry-run | --yes)
       annals erase --tenant T --entity E --entity-id ID --reason R (--dry-run | --yes)
       annals erase --list [--tenant T]

Erases a person or a document from all data of a tenant: the name of an actor, the id of an actor
with the names beside it, or the id, the names and the values of a document, also where other
documents refer to it. The entries stay, with erased-<random> and "[erased]" in place of the data,
so totals do not change. Erase at the source first: later changes there are recorded again.

--actor erases the name of all who have it, as actors and as those on whose behalf somebody acts.
Ids beside the name stay, listed in ids. --actor-id erases one person: the id, its names, and the
contexts of these changes. Changes by the same names without the id, or with another, stay, and
are counted in sameName. --context NAMES, separated by commas, also erases the contexts of other
changes in which a member of such a name equals the id.

--paths FILE names paths of other types whose values are erased too, in changes of the person or
related to the document: one JSON object a line, {"entity":"order","path":"customer.email"}.
--reason is request, law, mistake or other. The service may run. If the command is interrupted,
or reports that the person is still being recorded (exit code 1), run it again. It deletes all
exports and stored results of the tenant. A tenant on hold is refused. Prints one JSON object:
tenant, erasure, entries, rows (changed or deleted rows of other tables), untold (subscriptions
that received changes and cannot be notified of their erasure) and left (ids that stay, and by
--actor-id texts with a word that may be the person).

--dry-run changes nothing. It prints a JSON object for each document of the history and each row
of another table with the person in it, and then the object above.
--leave-ids leaves ids and names of paths that contain the person. Without it they stop the
command before anything is erased: ids of agents, custom types and instances, keys of settings.
--certificate FILE writes what was erased, where, and what stays, signed with the proof key, for
the person. "annals verify" checks it. Needs ANNALS_PROOF_KEY_FILE and a sealed history.

--vacuum rewrites each touched table afterwards, one after the other, so that its files contain
nothing of the person, and prints how long the table was locked.
--list prints the erasures of a tenant, or of all, one JSON object a line: keep the output as a
file for annals restore --erasures. The persons are sealed under the secret key.

Example:
  annals erase --tenant acme --entity customer --entity-id 4711 --reason request --yes
  annals erase --tenant acme --actor-id u-17 --context user_id --reason request --dry-run`,

  async run(args, io) {
    const { values } = parseCommand('erase', {
      args,
      options: {
        tenant: { type: 'string' },
        actor: { type: 'string' },
        'actor-id': { type: 'string' },
        context: { type: 'string' },
        entity: { type: 'string' },
        'entity-id': { type: 'string' },
        paths: { type: 'string' },
        reason: { type: 'string' },
        'dry-run': { type: 'boolean', default: false },
        yes: { type: 'boolean', default: false },
        vacuum: { type: 'boolean', default: false },
        certificate: { type: 'string' },
        'leave-ids': { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
      },
    });
    if (values.list) return await list(io, values.tenant);
    const { tenant, 'dry-run': dryRun, yes } = values;
    const reason = erasureReasons.find((known) => known === values.reason);
    if (tenant === undefined) throw new UsageError('erase needs --tenant');
    if (reason === undefined) throw new UsageError(`erase needs a --reason of ${erasureReasons.join(', ')}`);
    if (dryRun === yes)
      throw new UsageError('erase cannot be undone: it needs --yes, or --dry-run to see what it would do');
    const subject: Subject = { ...subjectOf(values), paths: await pathsOf(values.paths) };
    const { vacuum, certificate, 'leave-ids': leaveIds } = values;
    if (dryRun && vacuum) throw new UsageError('--vacuum belongs to --yes');
    if (dryRun && certificate !== undefined) throw new UsageError('--certificate belongs to --yes');
    if (certificate === '') throw new UsageError('--certificate needs the name of a file');
    return await run(io, { tenant, subject, reason, dryRun, vacuum, certificate, leaveIds });
  },
};

async function list(io: CommandIo, tenant: string | undefined): Promise<number> {
  return await withInterruptibleDatabase(io, async ({ db }) => {
    if (tenant !== undefined) await requireNamedTenant(db, tenant);
    for await (const line of linesOfErasures(db, tenant)) io.answer(line);
    return 0;
  });
}

interface Erasure {
  tenant: string;
  subject: Subject;
  reason: ErasureReason;
  dryRun: boolean;
  vacuum: boolean;
  /** A path. */
  certificate: string | undefined;
  leaveIds: boolean;
}

async function run(io: CommandIo, erasure: Erasure): Promise<number> {
  const { tenant, subject, reason, dryRun, vacuum, certificate, leaveIds } = erasure;
  const signerOf = certificate === undefined ? undefined : certifying(io, tenant, certificate);
  const progress = new ProgressLine(io.stderr);
  let entries = 0;
  const outcome = await withInterruptibleDatabase(io, async ({ db, pool, sealer, now }) => {
    await requireNamedTenant(db, tenant);
    const certifier = await signerOf?.(db);
    const options: EraseOptions = {
      ...{ db, sealer, tenant, subject, reason, now, leaveIds },
      rest: (taken) => rest(taken, io.stop),
      onProgress(erased) {
        entries += erased;
        progress.show(`${entries} entries erased`, undefined);
      },
    };
    const counts = await (dryRun
      ? findSubject(options, (found) => io.answer(JSON.stringify(found)))
      : eraseSubject(options));
    const vacuumed: VacuumedTable[] | undefined = vacuum ? [] : undefined;
    // A run that found nothing may follow one that was interrupted before it vacuumed: then all tables are rewritten.
    const touched = counts.erasure === undefined ? undefined : Object.keys(counts.rows);
    for await (const rewritten of vacuum ? vacuumTables({ db, pool }, tenant, touched) : []) {
      io.tell(`annals: ${rewritten.table} was rewritten, and locked for ${rewritten.locked} ms`);
      vacuumed?.push(rewritten);
    }
    if (certificate !== undefined && certifier !== undefined) {
      await writeCertificate(certificate, certifier, { db, sealer, tenant, subject, counts, isVacuumed: vacuum, now });
    }
    return { ...counts, vacuumed };
  }).finally(() => progress.clear());
  const { erasure: id = null, ...counts } = outcome;
  io.answer(JSON.stringify({ tenant, erasure: id, ...counts }));
  return 0;
}

/** Makes the signer of a certificate. Throws an OperatorError, before the erasure, if it cannot be signed or stored. */
function certifying(io: CommandIo, tenant: string, file: string): (db: Database) => Promise<Signer> {
  const { proofKeyFile, baseUrl } = readConfig(io.environment);
  if (proofKeyFile === undefined) {
    throw new OperatorError('--certificate needs ANNALS_PROOF_KEY_FILE: the proof key signs it. Nothing was erased');
  }
  return async (db) => {
    const signer = openSigner(proofKeyFile, hostOfLogs(baseUrl, await readInstallationId(db)));
    try {
      return await prepareCertificate(db, tenant, signer, file);
    } finally {
      signer.newest.close();
    }
  };
}

interface SubjectOptions {
  readonly actor?: string | undefined;
  readonly 'actor-id'?: string | undefined;
  readonly context?: string | undefined;
  readonly entity?: string | undefined;
  readonly 'entity-id'?: string | undefined;
}

function subjectOf({ actor, 'actor-id': actorId, context, entity, 'entity-id': entityId }: SubjectOptions) {
  if (context !== undefined && actorId === undefined) throw new UsageError('--context belongs to --actor-id');
  const isDocument = entity !== undefined || entityId !== undefined;
  if (actor && actorId === undefined && !isDocument) return { actor };
  if (actorId && actor === undefined && !isDocument) {
    return { actorId, ...(context !== undefined && { context: namesOf(context) }) };
  }
  if (actor === undefined && actorId === undefined && entity && entityId) return { entity, entityId };
  throw new UsageError('erase needs --actor, --actor-id, or --entity with --entity-id');
}

/** Sorted, so that the same names make the same subject. */
function namesOf(context: string): string[] {
  const names = context.split(',').map((name) => name.trim());
  if (names.includes('')) throw new UsageError('--context needs names of members, separated by commas');
  return [...new Set(names)].sort();
}

async function pathsOf(file: string | undefined): Promise<NamedPaths[]> {
  if (file === undefined) return [];
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => line.trim());
  return lines.flatMap((line, index) => (line === '' ? [] : [pathOf(line, index + 1)]));
}

function pathOf(line: string, number: number): NamedPaths {
  const read = readJson(line);
  const { entity, path } = typeof read === 'object' && read !== null ? (read as Partial<NamedPaths>) : {};
  const fault = typeof path === 'string' ? parsePathPattern(path) : 'is no text';
  if (typeof entity !== 'string' || typeof path !== 'string' || typeof fault === 'string') {
    throw new UsageError(`line ${number} of the file of --paths is not {"entity": …, "path": …}`);
  }
  return { entity, path };
}

function readJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

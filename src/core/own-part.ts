/** The files of the program are no longer those that it was started from: another version was installed over it. */
export class ProgramReplaced extends Error {
  constructor(cause: unknown) {
    super(
      'The files of Annals were replaced or removed while it ran. Restart it: a part of it can no longer be loaded.',
      {
        cause,
      },
    );
    this.name = 'ProgramReplaced';
  }
}

/**
 * Loads a part of the program that many processes never need. Throws ProgramReplaced where its file is gone.
 *
 * @example
 * const { createTransport } = await loadPart(() => import('nodemailer'));
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load();
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND';
    throw isGone ? new ProgramReplaced(error) : error;
  }
}

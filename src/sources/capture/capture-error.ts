import { OperatorError } from '../../core/errors.ts';

/** An error of capture that the operator can correct. */
export class CaptureError extends OperatorError {
  override name = 'CaptureError';
}

/** Changes are, or may be, missing. Capture resumes only with `--resync` or `--accept-gap`. */
export class GapError extends CaptureError {
  constructor(what: string) {
    super(
      `gap: ${what}. Start again with --resync to compare the tables with the history, or with --accept-gap to continue ` +
        'without the missing changes',
    );
    this.name = 'GapError';
  }
}

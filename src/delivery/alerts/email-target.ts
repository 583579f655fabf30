import { randomUUID } from 'node:crypto';
import { sampleChange } from '../batches/sample-change.ts';
import { EmailTarget } from '../targets/schemas.ts';
import type { DeliveryResult, Sending, Target } from '../targets/target.ts';
import { alertOf, type MailOutcome, resultOf } from './alert-attempts.ts';
import { alertMail } from './alert-mail.ts';

export interface AlertMessage {
  readonly tenant: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
}

const noMailServer = 'E-mails wait: the operator has not set SMTP_URL and MAIL_FROM.';

export interface EmailTargetOptions {
  /** Sends an e-mail once. Undefined if no mail server is configured, so that e-mails wait. */
  send: (message: AlertMessage) => Promise<MailOutcome | undefined>;
  baseUrl: string | undefined;
  now: () => number;
}

/** Sends an e-mail when the threshold of matching changes is reached. */
export function createEmailTarget({ send, baseUrl, now }: EmailTargetOptions): Target {
  return {
    type: 'email',
    schema: EmailTarget,
    secrets: [],
    maxAge: 'P1D',
    isReplayed: false,
    // Erasures list positions, which e-mails do not show.
    receivesErasures: false,
    hostOf: ({ to }) => String(to),
    check: () => [],

    async test({ tenant, name, target }: Sending) {
      const { recipients, withValues } = alertOf(target);
      const change = sampleChange(now());
      const alert = { after: { position: 0, fingerprint: 0 }, count: 1, from: change.at, to: change.at };
      const content = { tenant, name, q: '', alert, changes: [change], withValues, baseUrl };
      const { subject, text } = alertMail(content);
      const sample = 'This is a sample. Nothing was changed.';
      const results = await Promise.all(
        recipients.map(async (to, index): Promise<DeliveryResult> => {
          const messageId = `<alert-sample.${randomUUID()}@annals>`;
          const mail = { tenant, to, subject: `Sample: ${subject}`, text: `${sample}\n\n${text}`, messageId };
          const outcome = await send(mail);
          if (outcome === undefined) return { outcome: 'failed', error: noMailServer };
          return resultOf(outcome, { index, count: recipients.length });
        }),
      );
      return results.find(({ outcome }) => outcome !== 'delivered') ?? { outcome: 'delivered' };
    },
  };
}

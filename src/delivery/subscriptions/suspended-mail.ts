/** The e-mail about a subscription suspended by failures. Its message id makes queueing idempotent. */
export function suspendedMail({
  tenant,
  id,
  name,
  since,
}: {
  readonly tenant: string;
  readonly id: string;
  readonly name: string;
  readonly since: Date;
}): { subject: string; text: string; messageId: string } {
  const shown = name.replaceAll(/[\p{Cc}\p{Surrogate}]/gu, ' ').trim();
  const text = [
    `The subscription "${shown}" (id ${id}) of the tenant ${tenant} is suspended:`,
    `since ${since.toISOString()} no delivery of it has succeeded.`,
    '',
    `Its attempts (/changelog/${tenant}/subscriptions/${id}/attempts) say why. Nothing is lost: when you resume it, it goes on`,
    'where it stopped, with all changes that are still kept.',
  ].join('\n');
  return {
    subject: `Annals: the subscription "${[...shown].slice(0, 100).join('')}" is suspended`,
    text,
    messageId: `<subscription-suspended.${tenant}.${encodeURIComponent(id)}.${since.getTime()}@annals>`,
  };
}

const words: Readonly<Record<string, string>> = {
  not_admitted: 'Your account was recognised, but nobody has let it in. Ask those who run Annals.',
  groups_left_out:
    "You are in so many groups that your company's provider did not name them. Ask those who run Annals to let you in by a role or your address.",
  declined:
    "You did not sign in at your company's provider, or it does not let you use Annals. Try it again, or ask those who run Annals.",
  too_many: 'Too many sign-ins failed from your address. Try it again in a minute.',
  expired: 'The sign-in took too long, or began in another browser. Try it again.',
  provider: "Your company's provider could not be reached, or its answer was refused. Try it again later.",
};

/** Takes why a sign-in with a company's account was refused from the address, and removes it there. Undefined where it was not. */
export function takeRefusal(): string | undefined {
  const parameters = new URLSearchParams(location.search);
  const reason = parameters.get('refused');
  if (reason === null) return undefined;
  parameters.delete('refused');
  const rest = parameters.size === 0 ? '' : `?${parameters}`;
  history.replaceState(null, '', `${location.pathname}${rest}`);
  return words[reason] ?? words.provider;
}

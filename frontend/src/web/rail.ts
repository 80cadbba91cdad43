/* On a narrow screen the navigation scrolls sideways: the entry of the open page comes into view. */
document
  .querySelector('.rail [aria-current]')
  ?.scrollIntoView({ block: 'nearest', inline: 'center' });
